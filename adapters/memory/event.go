package memory

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/personkey"
)

// storedEvent is an event with its message.
type storedEvent struct {
	healthlab.Event
	body []byte    // encrypted; nil once it is deleted
	at   time.Time // when it was written
	n    int64     // grows with every event written
}

func refOfEvent(e *healthlab.Event) personkey.Ref {
	return personkey.Ref{Team: e.Team, User: e.User}
}
