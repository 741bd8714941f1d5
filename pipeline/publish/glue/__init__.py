"""AWS's Glue catalog, for engines that read no other one."""
