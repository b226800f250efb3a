package people

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// InsuranceRecord is a patient's insurance. Printing or logging it shows nothing.
type InsuranceRecord struct {
	healthlab.Private

	MemberID     string       `json:"member_id"`
	PayorCode    string       `json:"payor_code"`
	Relationship Relationship `json:"relationship"`
	// Insured is the holder of the policy.
	Insured PersonDetails  `json:"insured"`
	Company CompanyDetails `json:"company"`
	GroupID *string        `json:"group_id"`
	// Guarantor is the person who pays; null if the patient pays.
	Guarantor *GuarantorDetails `json:"guarantor"`
	// IsPrimary is true if this insurance is billed first.
	IsPrimary bool `json:"is_primary"`
}

// Relationship is the patient's relationship to the holder of the policy.
type Relationship string

// Relationships.
const (
	RelationSelf   Relationship = "Self"
	RelationSpouse Relationship = "Spouse"
	RelationOther  Relationship = "Other"
)

// PersonDetails is the holder of a policy.
type PersonDetails struct {
	healthlab.Private

	FirstName   string         `json:"first_name"`
	LastName    string         `json:"last_name"`
	Gender      Gender         `json:"gender"`
	DOB         healthlab.Date `json:"dob"`
	Email       string         `json:"email"`
	PhoneNumber string         `json:"phone_number"`
	Address     Address        `json:"address"`
}

// CompanyDetails is an insurer, as in the registry of payors.
type CompanyDetails struct {
	Name    string  `json:"name"`
	Address Address `json:"address"`
}

// InsuranceRequest is a request to add an insurance record.
type InsuranceRequest struct {
	healthlab.Private

	// PayorCode is a code from the search for payors, or the code of a federal program whose plan depends on
	// the user's state.
	PayorCode    string             `json:"payor_code"`
	MemberID     string             `json:"member_id"`
	GroupID      *string            `json:"group_id"`
	Relationship Relationship       `json:"relationship"`
	Insured      PersonDetailsInput `json:"insured"`
	// Guarantor is required unless Relationship is Self.
	Guarantor *GuarantorInput `json:"guarantor"`
	// IsPrimary is true by default.
	IsPrimary *bool `json:"is_primary"`
}

// PersonDetailsInput is the holder of a policy, in a request.
type PersonDetailsInput struct {
	healthlab.Private

	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	// Gender is accepted in any letter case.
	Gender      Gender         `json:"gender"`
	DOB         healthlab.Date `json:"dob"`
	Email       string         `json:"email"`
	PhoneNumber string         `json:"phone_number"`
	Address     AddressInput   `json:"address"`
}

// Coverage is a stored insurance record.
type Coverage struct {
	healthlab.Private

	ID     uuid.UUID
	Team   healthlab.TeamID
	User   healthlab.UserID
	Record InsuranceRecord
	// ValidFrom is the time of creation. ValidUntil is the time at which a later record with the same is_primary
	// replaced this one; zero if this record is still valid.
	ValidFrom, ValidUntil time.Time
}

// Check returns Invalid with every problem of the request. today is the day in UTC.
func (r *InsuranceRequest) Check(today healthlab.Date) error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.Text(r.PayorCode, "payor_code", 1, rules.MaxText)
	c.Filled(r.MemberID, "member_id", rules.MaxText)
	if r.GroupID != nil {
		c.Filled(*r.GroupID, "group_id", rules.MaxText)
	}
	rules.OneOf(&p, r.Relationship, []Relationship{RelationSelf, RelationSpouse, RelationOther}, "relationship")
	switch {
	case r.Guarantor != nil:
		checkGuarantor(c.Under("guarantor"), *r.Guarantor)
	case r.Relationship != RelationSelf:
		c.Add("missing", "is required unless the relationship is Self", "guarantor")
	}
	in := c.Under("insured")
	in.Name(r.Insured.FirstName, "first_name")
	in.Name(r.Insured.LastName, "last_name")
	rules.OneOf(&p, Gender(strings.ToLower(string(r.Insured.Gender))), genders, "insured", "gender")
	checkBorn(in, r.Insured.DOB, today)
	in.Email(r.Insured.Email, "email")
	in.Phone(r.Insured.PhoneNumber, "phone_number")
	checkPostal(in.Under("address"), r.Insured.Address)
	return p.Err()
}
