"""`polynya aws check`: whether this account, this network and this machine can deploy Polynya."""
