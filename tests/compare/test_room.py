from __future__ import annotations

import asyncio

from compare.batcher import Batcher, Completed
from compare.room import Room


async def test_who_finds_no_room_waits_until_there_is_enough() -> None:
    room = Room(10)
    await room.take(6)
    await room.take(4)
    waiting = asyncio.create_task(room.take(8))
    for given_back in (4, 3):
        room.give_back(given_back)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
    room.give_back(1)
    await waiting
    # 2 and 8 are held; nothing more fits.
    assert not await fits(room, 1)


async def test_one_that_is_larger_than_all_goes_alone() -> None:
    room = Room(10)
    await room.take(50)
    assert not await fits(room, 1)
    room.give_back(50)
    await room.take(1)
    assert not await fits(room, 50)


async def fits(room: Room, size: int) -> bool:
    task = asyncio.create_task(room.take(size))
    await asyncio.sleep(0)
    task.cancel()
    return task.done()


def test_a_batch_is_due_at_its_number_its_bytes_or_its_age() -> None:
    batcher = Batcher("e", max_records=3, max_bytes=100, max_seconds=5.0)
    assert batcher.seconds_left(0.0) is None
    batcher.add(Completed(0, 0, 1, size=60), 1.0)
    assert batcher.seconds_left(2.0) == 4.0
    batcher.add(Completed(0, 1, 1, size=40), 2.0)
    assert (batcher.size, batcher.seconds_left(2.0)) == (100, 0.0)
    _, settled = batcher.cut(lambda completed: completed.offset != 0)
    assert [done.offset for done in settled] == [1]
    # What was dropped is held no more either.
    assert (batcher.size, batcher.seconds_left(9.0)) == (0, None)
    batcher.add(Completed(0, 0, 1, size=1, answer_bytes=100), 9.0)
    assert (batcher.answer_bytes, batcher.seconds_left(9.0)) == (100, 0.0)
    batcher.cut(lambda completed: True)
    for offset in range(3):
        batcher.add(Completed(0, offset, 1), 9.0)
    assert batcher.seconds_left(9.0) == 0.0
