package people

import (
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Physician is the ordering physician.
type Physician struct {
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	NPI       string `json:"npi"`
}

// PhysicianInput is a team's own physician.
type PhysicianInput struct {
	FirstName string  `json:"first_name"`
	LastName  string  `json:"last_name"`
	Email     *string `json:"email"`
	// NPI is the National Provider Identifier: ten digits, the last of which is a check digit.
	NPI            string   `json:"npi"`
	LicensedStates []string `json:"licensed_states" wire:"opt"`
	// SignatureImage is for bills to insurers.
	SignatureImage *ImageBlob `json:"signature_image"`
}

// PhysicianInputBase is a team's own physician without a signature.
type PhysicianInputBase struct {
	FirstName string  `json:"first_name"`
	LastName  string  `json:"last_name"`
	Email     *string `json:"email"`
	// NPI is the National Provider Identifier: ten digits, the last of which is a check digit.
	NPI            string   `json:"npi"`
	LicensedStates []string `json:"licensed_states" wire:"opt"`
}

// Input converts p to a [PhysicianInput] without a signature; nil for nil.
func (p *PhysicianInputBase) Input() *PhysicianInput {
	if p == nil {
		return nil
	}
	return &PhysicianInput{FirstName: p.FirstName, LastName: p.LastName, Email: p.Email, NPI: p.NPI, LicensedStates: p.LicensedStates}
}

// ImageBlob is a picture; base64 in JSON.
type ImageBlob struct {
	Content []byte `json:"content"`
	// ContentType is image/jpeg or image/png.
	ContentType string `json:"content_type"`
}

// Check adds every problem of the physician to problems. at is the path of the physician in the request.
func (p PhysicianInput) Check(problems *healthlab.Problems, at ...any) {
	c := rules.Check{Problems: problems, At: at}
	c.Text(p.FirstName, "first_name", 1, rules.MaxText)
	c.Text(p.LastName, "last_name", 1, rules.MaxText)
	c.NPI(p.NPI, "npi")
	if p.Email != nil {
		c.Email(*p.Email, "email")
	}
	for i, s := range p.LicensedStates {
		if !slices.Contains(rules.StatesOfUS, s) {
			c.Add("state_form", "must be the two upper-case letters of a state or a territory of the US", "licensed_states", i)
		}
	}
	checkImage(c, p.SignatureImage, "signature_image")
}

func checkImage(c rules.Check, b *ImageBlob, field string) {
	if b == nil {
		return
	}
	if len(b.Content) == 0 {
		c.Add("missing", "is required", field, "content")
	}
	rules.OneOf(c.Problems, b.ContentType, []string{"image/jpeg", "image/png"}, append(slices.Clone(c.At), field, "content_type")...)
}

// Physician returns the name and the NPI, which orders show; nil for nil.
func (p *PhysicianInput) Physician() *Physician {
	if p == nil {
		return nil
	}
	return &Physician{FirstName: p.FirstName, LastName: p.LastName, NPI: p.NPI}
}
