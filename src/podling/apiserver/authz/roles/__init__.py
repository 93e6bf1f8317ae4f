"""The roles and bindings that every cluster has, as tables; `podling.controllers.roles` creates them."""
