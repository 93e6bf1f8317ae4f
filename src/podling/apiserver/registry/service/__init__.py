"""Services: what their type calls for, what an update takes over, and what is wrong with one."""
