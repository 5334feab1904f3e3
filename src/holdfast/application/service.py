"""`CheckpointService`: everything a workflow asks of Holdfast, for callers that wait."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, TypeVar, overload

from holdfast.application.commands import AppendEvent, CreateCheckpoint
from holdfast.application.commit_queue import CommitQueue, Ticket
from holdfast.application.housekeeping import Housekeeper
from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.application.resolve import CheckpointName, resolve, uuid_of
from holdfast.application.retain import Plan, PruneResult, plan_delete, plan_prune, secure
from holdfast.application.validate import ValidationResult, validate
from holdfast.application.writer import Writer
from holdfast.domain.checkpoint import DEFAULT_MAX_RETRIES, Checkpoint, CheckpointMeta, CheckpointType, Scope
from holdfast.domain.delta import Operation
from holdfast.domain.errors import CheckpointConflictError, CheckpointNotFoundError
from holdfast.domain.event import Event
from holdfast.domain.ids import CheckpointID, check_id, check_workflow_id
from holdfast.domain.reducers import AGENT_STATE_EVENT, DECISION_EVENT
from holdfast.domain.retention import RetentionPolicy
from holdfast.domain.state import WorkflowState
