-- How many replays of an application are running; and which have ended, in the order of their ends.
CREATE INDEX replay_app ON replay (app) WHERE state = 0;
CREATE INDEX replay_ended ON replay (updated_at) WHERE state > 0;
