package webhook

import (
	"crypto/sha256"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Lane identifies a queue of one endpoint, whose deliveries are sent one after another.
type Lane [16]byte

// LaneOf returns the lane of an event at an endpoint. An event of mode Independent, or without a key, has its
// own lane. Other events share the lane of their key, or with [OrderUser] the lane of their user if they have
// one.
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

// SupersedeKey returns the key whose waiting older events a new event replaces; empty if it replaces none.
func SupersedeKey(e healthlab.Event, mode healthlab.Mode) string {
	if mode != healthlab.Latest {
		return ""
	}
	return e.Key
}

func modeOf(modes map[string]healthlab.Mode, eventType string) healthlab.Mode {
	if m, ok := modes[eventType]; ok {
		return m
	}
	return healthlab.Ordered // the strictest mode
}

// LaneEntry has the fields of an unfinished delivery that [Place] needs.
type LaneEntry struct {
	Event   uuid.UUID
	Key     string // [SupersedeKey] of the event; empty if no event replaces it
	Seq     int64
	Sending bool // the delivery has a valid lease
}

// LaneView is the state of a lane (a queue of deliveries) that [Place] needs for an arriving event.
type LaneView struct {
	// Head is the first delivery of the lane; nil if the lane is empty.
	Head *LaneEntry
	// Behind reports whether another delivery waits behind the first.
	Behind bool
	// Same is the waiting delivery of the arriving event's key; nil if there is none.
	Same *LaneEntry
}

// Placement is the position of an arriving event in its lane.
type Placement uint8

const (
	// BecomeHead makes the event the first delivery of an empty lane.
	BecomeHead Placement = iota + 1
	// ReplaceHead replaces the lane's first delivery, which was not sent and is outdated: attempts start again,
	// and the new delivery is due at once.
	ReplaceHead
	// ReplaceWaiting replaces the waiting delivery of the key.
	ReplaceWaiting
	// WaitBehind adds the event at the end of the lane.
	WaitBehind
	// Drop ignores the event, because the lane has an equal or newer event of the key.
	Drop
)

// Place returns the position of an arriving event in its lane, a queue of deliveries to one endpoint. key is its
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
// A head is replaced only if nothing waits behind it: with version 1 as head and version 2 waiting, version 3 in the
// head's place would be sent before version 2.
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
