"""What is true: values and rules, without input or output, clock or chance.

Glossary:
    workflow: one run, named by its workflow id; made of stages.
    stage: a step of the plan; also called layer or phase.
    agent: one unit of work in a stage, the smallest thing that is retried.
    session: one stretch of work by one process or one context window.
    event: one fact in a workflow's journal, chained to the one before by its hash.
    checkpoint: a committed point of a workflow with the whole state as of then.
    keyframe, delta: a state stored complete, or as the change since its base.
    group: a keyframe and the file of the deltas after it; removed together.
    blob: a large value kept once under its SHA-256.
    tombstone: what stays of a pruned checkpoint, so that the chain remains checkable.
    plain tree: null, booleans, numbers, strings, lists and objects; what is stored of any value.
"""
