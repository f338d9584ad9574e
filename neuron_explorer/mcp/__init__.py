"""The agents' server: the same answers as the commands give, over the Model Context Protocol."""
