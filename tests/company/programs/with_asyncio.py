"""Three trainings as tasks of one event loop that take turns, with steps in its thread pool between them."""
import asyncio

import small_training


async def train(number):
    training = small_training.Training(number)
    for step in range(6):
        await asyncio.sleep(0)
        async with lock:  # all threads draw dropout from one stream: one after the other
            training.step()
        async with lock:
            await asyncio.get_running_loop().run_in_executor(None, training.step)
    return training


async def main():
    global lock
    asyncio.get_running_loop().slow_callback_duration = 600  # a slow machine must not add lines to stderr
    lock = asyncio.Lock()
    trainings = [await train(0), *await asyncio.gather(*(train(number) for number in (1, 2)))]
    for training in trainings:
        small_training.show(training)
    await asyncio.get_running_loop().run_in_executor(None, small_training.show_and_go_bad, trainings[0])


asyncio.run(main(), debug=True)
