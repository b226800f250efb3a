package people

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Payor is an insurer.
type Payor struct {
	// PayorCode identifies the payor at all labs.
	PayorCode  string   `json:"payor_code"`
	Name       string   `json:"name"`
	Aliases    []string `json:"aliases"`
	OrgAddress Address  `json:"org_address"`
	// Source is platform or team.
	Source PayorSource `json:"source"`
}

// PayorSource is the origin of a payor: platform or team.
type PayorSource string

// Sources of payors.
const (
	PlatformPayor PayorSource = "platform"
	TeamPayor     PayorSource = "team"
)

// StoredPayor is a stored payor of a team.
type StoredPayor struct {
	Payor
	Team healthlab.TeamID
	// ClearingHouse and ProviderPayorID identify the payor at a clearing house; both are empty, or neither.
	ClearingHouse, ProviderPayorID string
	CreatedAt                      time.Time
}

// PayorRequest is a request to add a payor of the team.
type PayorRequest struct {
	Name    string       `json:"name"`
	Address AddressInput `json:"address"`
	// Provider is the name of a clearing house, and ProviderPayorID the payor's code there. A request gives both or
	// neither.
	Provider        *string `json:"provider"`
	ProviderPayorID *string `json:"provider_payor_id"`
}

// PayorQuery finds payors by a part of their name, or by their code at a clearing house.
type PayorQuery struct {
	Name            string
	ClearingHouse   string
	ProviderPayorID string
}

// Check returns Invalid with every problem of the request.
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
