"""Agents that run elsewhere: what is sent there, the journal of a step, and who follows it."""
