from datetime import datetime, timedelta, timezone

from svix.api import BackgroundTaskListOptions, RecoverIn
from svix.models import BackgroundTaskStatus, BackgroundTaskType, ReplayIn

from stage import RECEIVER, Test, eventually


class Recovery(Test):
    def finished(self, task):
        def look():
            now = self.svix.background_task.get(task.id)
            return now if now.status == BackgroundTaskStatus.FINISHED else None

        return eventually(look, f"the end of {task.id}")

    def test_what_has_failed_is_sent_again(self):
        began = datetime.now(timezone.utc) - timedelta(minutes=1)
        hook = RECEIVER.hook(400)
        endpoint = self.quick_endpoint(hook)
        sent = [self.send({"number": number}) for number in range(3)]
        for message in sent:
            self.delivered(message, 2)
        before = sorted(hook.next().body for _ in sent)
        hook.answers = [204]
        task = self.svix.endpoint.recover(self.app, endpoint.id, RecoverIn(since=began))
        self.assertEqual(task.task, BackgroundTaskType.ENDPOINT_RECOVER)
        self.assertEqual(sorted(hook.next().body for _ in sent), before)
        self.assertEqual(self.finished(task).task, BackgroundTaskType.ENDPOINT_RECOVER)
        for message in sent:
            self.delivered(message, 0)
        hook.stays_silent()

    def test_a_new_endpoint_gets_what_it_has_missed(self):
        began = datetime.now(timezone.utc) - timedelta(minutes=1)
        self.send({"missed": True})
        hook = RECEIVER.hook()
        endpoint = self.endpoint(hook)
        task = self.svix.endpoint.replay_missing(self.app, endpoint.id, ReplayIn(since=began))
        self.assertEqual(hook.next().json(), {"missed": True})
        self.finished(task)
        options = BackgroundTaskListOptions(task=BackgroundTaskType.ENDPOINT_REPLAY, limit=250)
        self.assertIn(task.id, [one.id for one in self.svix.background_task.list(options).data])

    def test_everything_can_be_sent_again(self):
        from svix.models import BulkReplayIn

        began = datetime.now(timezone.utc) - timedelta(minutes=1)
        hook = RECEIVER.hook()
        endpoint = self.endpoint(hook)
        self.delivered(self.send())
        hook.next()
        self.svix.endpoint.bulk_replay(self.app, endpoint.id, BulkReplayIn(since=began))
        self.assertEqual(hook.next().json(), {"invoice": 42})
