"""Views that other views and functions of the schema read."""

from datetime import datetime
from typing import Any

from sqlalchemy import SmallInteger
from sqlalchemy.orm import Mapped, mapped_column

from nearsim_db.store.schema.orm_views.base import Big, BigKey, Key, View


class GrantedGenerations(View):
    """Internal: the generations that were granted to the user."""

    __tablename__ = "granted_generations"
    generation_id: Mapped[Key]
    collection_id: Mapped[int]


class VisibleProfiles(View):
    """Internal: the profiles that the user may see, each with its live generation."""

    __tablename__ = "visible_profiles"
    collection_id: Mapped[Key]
    profile: Mapped[str] = mapped_column(primary_key=True)
    generation_id: Mapped[int | None]
    bands: Mapped[int | None] = mapped_column(SmallInteger)
    rows: Mapped[int | None] = mapped_column(SmallInteger)
    recipe: Mapped[dict[str, Any] | None]


class QueuedWork(View):
    """Internal: queued work by document, with the documents of batches."""

    __tablename__ = "queued_work"
    generation_id: Mapped[Key]
    stage: Mapped[str] = mapped_column(primary_key=True)
    doc_id: Mapped[BigKey]
    queued_at: Mapped[datetime]
    due_at: Mapped[datetime]
    lease_id: Mapped[int | None]
    attempts: Mapped[int] = mapped_column(SmallInteger)
    error: Mapped[str | None]
    set_aside_at: Mapped[datetime | None]


class VisibleWork(View):
    """Internal: queued work of the generations that the user may see."""

    __tablename__ = "visible_work"
    generation_id: Mapped[Key]
    stage: Mapped[str] = mapped_column(primary_key=True)
    doc_id: Mapped[BigKey]
    set_aside_at: Mapped[datetime | None]


class VisibleChanges(View):
    """Internal: captured writes of the collections that the user may see."""

    __tablename__ = "visible_changes"
    collection_id: Mapped[int | None] = mapped_column(primary_key=True)
    doc_id: Mapped[Big | None] = mapped_column(primary_key=True)
    external_id: Mapped[str | None] = mapped_column(primary_key=True)


class AttachedTexts(View):
    """Internal: documents whose texts are in an attached table."""

    __tablename__ = "attached_texts"
    doc_id: Mapped[BigKey]
    body: Mapped[str | None]
