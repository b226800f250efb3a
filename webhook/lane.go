package webhook

import (
	"crypto/sha256"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Lane names the queue of one endpoint in which an event waits its turn.
type Lane [16]byte

// LaneOf returns the lane of an event at an endpoint with this scope. An event of
// mode Independent, or without a key, has a lane of its own. All others share that
// of their key; with [OrderUser], that of their user, where they have one.
func LaneOf(e healthlab.Event, mode healthlab.Mode, scope OrderScope) Lane {
	switch {
	case mode == healthlab.Independent || e.Key == "":
		return laneHash("event", e.ID[:])
	case scope == OrderUser && !e.User.IsZero():
		return laneHash("user", e.User.UUID[:])
	default:
		return laneHash("key", []byte(e.Key))
	}
}

func laneHash(kind string, name []byte) Lane {
	h := sha256.New()
	h.Write([]byte(kind))
	h.Write([]byte{0})
	h.Write(name)
	return Lane(h.Sum(nil)[:16])
}

// SupersedeKey returns the key within which an event replaces older ones; empty if it
// replaces none.
func SupersedeKey(e healthlab.Event, mode healthlab.Mode) string {
	if mode != healthlab.Latest {
		return ""
	}
	return e.Key
}

// ModeOf returns the mode of a type. A type that modes does not have is Ordered,
// which holds back more than necessary, without harm.
func ModeOf(modes map[string]healthlab.Mode, eventType string) healthlab.Mode {
	if m, ok := modes[eventType]; ok {
		return m
	}
	return healthlab.Ordered
}

// LaneEntry is what [Place] needs to know of one unfinished delivery.
type LaneEntry struct {
	Event   uuid.UUID
	Key     string // the key within which it is superseded; empty if never
	Seq     int64
	Sending bool // it has a lease that has not ended
}

// LaneView is a lane as one arriving event sees it.
type LaneView struct {
	// Head is the lane's head; nil if the lane is empty.
	Head *LaneEntry
	// Behind reports whether anything waits behind the head.
	Behind bool
	// Same is the delivery of the arriving event's key that waits behind the head;
	// nil if none does.
	Same *LaneEntry
}

// Placement is where an arriving event goes.
type Placement uint8

const (
	// BecomeHead makes it the head of an empty lane.
	BecomeHead Placement = iota + 1
	// ReplaceHead puts it in the place of the head, which was not sent and need not
	// be: attempts start again, and it is due at once.
	ReplaceHead
	// ReplaceWaiting puts it in the place of the waiting delivery of its key.
	ReplaceWaiting
	// WaitBehind puts it at the end of the lane.
	WaitBehind
	// Drop leaves it out: something as new or newer is there already.
	Drop
)

// Place is the rule of lanes: where an arriving event goes. key is its
// [SupersedeKey], seq its Seq.
//
//	head                                   what happens
//	none                                   becomes the head
//	same key, as new or newer              dropped
//	same key, older, not being sent,
//	  and nothing waits behind it          takes the head's place
//	any other                              takes the place of the waiting one of its
//	                                       key if that is older, is dropped if that is
//	                                       not, and waits behind if there is none
//
// That nothing must wait behind a head to be replaced is not decoration: with
// version 1 as head and version 2 waiting, version 3 in the head's place would be
// followed by version 2.
func Place(lane LaneView, key string, seq int64) Placement {
	head := lane.Head
	switch {
	case head == nil:
		return BecomeHead
	case key == "":
		return WaitBehind
	case head.Key == key && head.Seq >= seq:
		return Drop
	case head.Key == key && !head.Sending && !lane.Behind:
		return ReplaceHead
	case lane.Same == nil:
		return WaitBehind
	case lane.Same.Seq >= seq:
		return Drop
	default:
		return ReplaceWaiting
	}
}
