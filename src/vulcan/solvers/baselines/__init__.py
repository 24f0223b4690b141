"""What others do: RAO*, penalties, linear and integer programs.

`rao_star`, `penalty`, `linear_program` and `integer_program` are the solvers. Programs are written
as flows (`flow_program`, `links`), and our integer program is made small first (`reduction`).
"""
