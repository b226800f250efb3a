package orders

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// OrderTransaction is one testing journey: the first order, and the redraws and
// recreations that came out of it.
type OrderTransaction struct {
	ID     TransactionID     `json:"id"`
	Status TransactionStatus `json:"status"`
	// Orders are the members, ascending by creation time.
	Orders []TransactionMember `json:"orders"`
}

// TransactionMember is one order as its transaction shows it.
type TransactionMember struct {
	ID OrderID `json:"id"`
	// LowLevelStatus is the order's latest; null if it has none yet.
	LowLevelStatus *LowLevel `json:"low_level_status"`
	// LowLevelStatusCreatedAt is when it was reached.
	LowLevelStatusCreatedAt *healthlab.Time `json:"low_level_status_created_at"`
	Origin                  Origin          `json:"origin"`
	// ParentID is the order that this one came out of; null for the first.
	ParentID  *OrderID       `json:"parent_id"`
	CreatedAt healthlab.Time `json:"created_at"`
	UpdatedAt healthlab.Time `json:"updated_at"`
}

// NewTransaction joins members to a transaction: sorted by creation time (ties by
// id), with the status that follows from theirs. The slice is taken over.
func NewTransaction(id TransactionID, members []TransactionMember) OrderTransaction {
	slices.SortFunc(members, func(a, b TransactionMember) int {
		if c := a.CreatedAt.Compare(b.CreatedAt.Time); c != 0 {
			return c
		}
		return bytes.Compare(a.ID.UUID[:], b.ID.UUID[:])
	})
	return OrderTransaction{ID: id, Status: transactionStatus(members), Orders: members}
}

// transactionStatus: active while a member is in progress; else completed if one of them
// has a final report; else cancelled.
func transactionStatus(members []TransactionMember) TransactionStatus {
	status := TransactionCancelled
	for _, m := range members {
		if m.LowLevelStatus == nil || !m.LowLevelStatus.Final() {
			return TransactionActive
		}
		switch *m.LowLevelStatus {
		case Completed, Corrected, RedrawAvailable:
			status = TransactionCompleted
		}
	}
	return status
}

// Member returns the order as its transaction shows it.
func (o Order) Member() TransactionMember {
	m := TransactionMember{
		ID: o.ID, Origin: o.Origin, ParentID: o.Parent(), CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
	}
	if len(o.Events) > 0 {
		low, at := o.LowLevel(), o.LastEvent.CreatedAt
		m.LowLevelStatus, m.LowLevelStatusCreatedAt = &low, &at
	}
	return m
}

// Parent returns the order that this one came out of, as its own transaction says;
// nil for the first.
func (o Order) Parent() *OrderID {
	for _, m := range o.OrderTransaction.Orders {
		if m.ID == o.ID {
			return m.ParentID
		}
	}
	return nil
}

// rejoin puts the order, as it is now, into its own view of the transaction.
func (o *Order) rejoin() {
	me := o.Member()
	members := slices.Clone(o.OrderTransaction.Orders)
	if i := slices.IndexFunc(members, func(m TransactionMember) bool { return m.ID == o.ID }); i >= 0 {
		members[i] = me
	} else {
		members = append(members, me)
	}
	o.OrderTransaction = NewTransaction(o.OrderTransaction.ID, members)
}

// TransactionDetail is a transaction as it is read on its own.
type TransactionDetail struct {
	ID     TransactionID             `json:"id"`
	TeamID healthlab.TeamID          `json:"team_id"`
	Status TransactionStatus         `json:"status"`
	Orders []TransactionDetailMember `json:"orders"`
}

// TransactionDetailMember is a member under both names that its status has had.
type TransactionDetailMember struct {
	TransactionMember
	// LastStatus equals LowLevelStatus.
	LastStatus *LowLevel `json:"last_status"`
	// LastStatusCreatedAt equals LowLevelStatusCreatedAt.
	LastStatusCreatedAt *healthlab.Time `json:"last_status_created_at"`
}

// UnmarshalJSON reads either name of the status and of its time.
func (m *TransactionDetailMember) UnmarshalJSON(b []byte) error {
	type plain TransactionDetailMember
	if err := json.Unmarshal(b, (*plain)(m)); err != nil {
		return err
	}
	m.LowLevelStatus, m.LastStatus = cmp.Or(m.LowLevelStatus, m.LastStatus), cmp.Or(m.LastStatus, m.LowLevelStatus)
	m.LowLevelStatusCreatedAt = cmp.Or(m.LowLevelStatusCreatedAt, m.LastStatusCreatedAt)
	m.LastStatusCreatedAt = cmp.Or(m.LastStatusCreatedAt, m.LowLevelStatusCreatedAt)
	return nil
}

// Detail returns the transaction as it is read on its own.
func (t OrderTransaction) Detail(team healthlab.TeamID) TransactionDetail {
	d := TransactionDetail{ID: t.ID, TeamID: team, Status: t.Status, Orders: []TransactionDetailMember{}}
	for _, m := range t.Orders {
		d.Orders = append(d.Orders, TransactionDetailMember{m, m.LowLevelStatus, m.LowLevelStatusCreatedAt})
	}
	return d
}

// IsZero reports whether the id is the zero value.
func (id TransactionID) IsZero() bool { return id.UUID == uuid.Nil }
