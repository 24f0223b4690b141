// Builds the page's program and style, and the licences of what is bundled, into the package.
// The first line of the program has a digest of these sources, so that a test can tell a stale one.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";

const target = "../src/vulcan/pages/assets";
const digest = createHash("sha256");
for (const name of readdirSync("source").sort()) digest.update(readFileSync(`source/${name}`));

const shared = { bundle: true, minify: true, target: "es2022", legalComments: "none" };
const result = await build({
  ...shared,
  entryPoints: ["source/main.jsx"],
  outfile: `${target}/explorer.js`,
  format: "iife",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  banner: { js: `/* sources ${digest.digest("hex")}; licences: LICENCES.txt of vulcan.pages */` },
  metafile: true,
});
await build({ ...shared, entryPoints: ["source/style.css"], outfile: `${target}/explorer.css` });

const used = new Set();
for (const path of Object.keys(result.metafile.inputs)) {
  const found = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) used.add(found[1]);
}
const licences = [...used].sort().map((name) => {
  const about = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  const text = readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim();
  return `${name} ${about.version}, ${about.license}\n\n${text}\n`;
});
writeFileSync(
  `${target}/LICENCES.txt`,
  "explorer.js holds parts of these libraries.\n\n" + licences.join("\n" + "-".repeat(72) + "\n\n"),
);
