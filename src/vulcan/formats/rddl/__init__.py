"""RDDL, the language of the planning competitions, as exact models.

`opening` knows what a string or a path means and makes the model; `reading` lets pyRDDLGym parse
and check the files; `grounding` turns every expression of an instance into a `terms.Term`, Python
code over flat values; `distributions` are the finite distributions that such code makes; and
`model` lists with it the allowed actions of a state and all outcomes of an action.
"""
