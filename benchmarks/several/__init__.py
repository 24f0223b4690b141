"""Problems with several constraints: deterministic policies, linear programs, and Storm.

`python -m benchmarks.several` compares Vulcan with what else knows the answers:

    fields    ten models of different fields, by default, in 20 s each (`benchmarks.several.fields`)
    programs  linear programs over occupation measures (`benchmarks.several.programs`)
    storm     multi-objective queries over models by other people (`benchmarks.several.storm`)
"""
