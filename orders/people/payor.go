package people

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Payor is an insurer.
type Payor struct {
	// PayorCode is the same at all labs.
	PayorCode  string   `json:"payor_code"`
	Name       string   `json:"name"`
	Aliases    []string `json:"aliases"`
	OrgAddress Address  `json:"org_address"`
	// Source says who made the entry.
	Source PayorSource `json:"source"`
}

// PayorSource is platform or team.
type PayorSource string

// The sources of payors.
const (
	PlatformPayor PayorSource = "platform"
	TeamPayor     PayorSource = "team"
)

// StoredPayor is a payor that a team made, as it is kept.
type StoredPayor struct {
	Payor
	Team healthlab.TeamID
	// ClearingHouse and ProviderPayorID name it elsewhere; both are empty, or neither.
	ClearingHouse, ProviderPayorID string
	CreatedAt                      time.Time
}

// PayorRequest asks for a payor of the team's own.
type PayorRequest struct {
	Name    string       `json:"name"`
	Address AddressInput `json:"address"`
	// Provider is a clearing house, and ProviderPayorID the payor's code there.
	Provider        *string `json:"provider"`
	ProviderPayorID *string `json:"provider_payor_id"`
}

// PayorQuery looks for payors: by a part of a name, or by the code that a clearing
// house has for one.
type PayorQuery struct {
	Name            string
	ClearingHouse   string
	ProviderPayorID string
}

// Check returns Invalid with every problem of the request itself.
func (r *PayorRequest) Check() error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.Text(r.Name, "name", 1, rules.MaxText)
	checkPostal(c.Under("address"), r.Address)
	c.Optional(r.Provider, "provider", rules.MaxText)
	c.Optional(r.ProviderPayorID, "provider_payor_id", rules.MaxText)
	if r.Provider == nil && r.ProviderPayorID != nil {
		c.Add("missing", "must be given together with provider_payor_id", "provider")
	}
	if r.Provider != nil && r.ProviderPayorID == nil {
		c.Add("missing", "must be given together with provider", "provider_payor_id")
	}
	return p.Err()
}
