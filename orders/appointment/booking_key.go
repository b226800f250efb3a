package appointment

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// BookingKey is the content of a booking key. Callers get the key encrypted with a free slot, and pass it to book the
// slot.
type BookingKey struct {
	ID   uuid.UUID `json:"id"`
	Type Type      `json:"type"`
	// Lab is the slug of the lab that owns the center; Address is the address of a home visit.
	Lab     string   `json:"lab,omitempty"`
	Address *Address `json:"address,omitempty"`
	Slot    Slot     `json:"slot"`
}

func (k *BookingKey) expires() time.Time {
	if k.Slot.Expires.IsZero() || k.Slot.Expires.After(k.Slot.Start) {
		return k.Slot.Start
	}
	return k.Slot.Expires
}

func boundTo(team healthlab.TeamID) []byte { return []byte("booking key of " + team.String()) }

// sealKey encrypts a booking key for one team.
func (s *Service) sealKey(ctx context.Context, team healthlab.TeamID, k BookingKey) (string, error) {
	plain, err := json.Marshal(k)
	if err != nil {
		return "", fmt.Errorf("booking key: %w", err)
	}
	box, err := s.opts.BookingKeys.Seal(ctx, plain, boundTo(team))
	if err != nil {
		return "", fmt.Errorf("booking key: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(box.KeyID)) + "." + base64.RawURLEncoding.EncodeToString(box.Box), nil
}

// OpenKey decrypts a booking key of a team for a visit of the type t, at the time at. RuleErrors: BOOKING_KEY_INVALID
// for a text that is no key of this team, or a key for another type; SLOT_NOT_AVAILABLE if the key has expired.
func (s *Service) OpenKey(ctx context.Context, team healthlab.TeamID, t Type, text string, at time.Time) (BookingKey, error) {
	var k BookingKey
	name, box, ok := strings.Cut(text, ".")
	id, noName := base64.RawURLEncoding.DecodeString(name)
	sealed, noBox := base64.RawURLEncoding.DecodeString(box)
	if !ok || noName != nil || noBox != nil {
		return k, rules.Broken(BookingKeyInvalid, "booking_key: must be one that the slots of this team were returned with")
	}
	plain, err := s.opts.BookingKeys.Open(ctx, healthlab.Sealed{KeyID: string(id), Box: sealed}, boundTo(team))
	if err != nil {
		if ctx.Err() != nil {
			return k, ctx.Err()
		}
		return k, rules.Broken(BookingKeyInvalid, "booking_key: must be one that the slots of this team were returned with")
	}
	if err := json.Unmarshal(plain, &k); err != nil {
		return k, rules.Broken(BookingKeyInvalid, "booking_key: must be one that the slots of this team were returned with")
	}
	switch {
	case k.Type != t:
		return k, rules.Broken(BookingKeyInvalid, "booking_key: must be of the same kind of visit as the request")
	case !at.Before(k.expires()):
		return k, SlotGone()
	}
	return k, nil
}

// SlotGone returns the Conflict SLOT_NOT_AVAILABLE: the slot is taken or has expired.
func SlotGone() error {
	return &healthlab.RuleError{Kind: healthlab.Conflict, Type: SlotNotAvailable, Msg: "the slot is taken or over; ask for the available slots again"}
}
