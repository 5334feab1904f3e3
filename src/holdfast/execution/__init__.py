"""The durable executor: workflows of agents that survive any crash, and the engines they run on."""
