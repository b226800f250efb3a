package hl7

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// OrderMessage is the HL7 message type of orders.
type OrderMessage string

// Types of order messages.
const (
	OML OrderMessage = "OML^O21"
	ORM OrderMessage = "ORM^O01"
)

// Party is a sender or a receiver in message headers (MSH-3 to MSH-6): an application, and the facility in which it
// runs.
type Party struct{ Application, Facility string }

// Options describes the HL7 dialect of one laboratory. The zero value, and nil, mean the defaults.
type Options struct {
	// Us and Lab name this service and the laboratory in message headers.
	Us, Lab Party
	// LabSlug is the laboratory's slug in the catalogue, and the name of its journal. A result for an order at another
	// laboratory is held for review. Default: results name no laboratory.
	LabSlug string
	// ReviewTeam reviews results that name no order of this service, through the exchange.Service. Results that name
	// an order of another patient, or a cancelled one, are always reviewed by the order's team. Default: results that
	// name no order stay in the journal, for [Backend.Review].
	ReviewTeam healthlab.TeamID
	// Message is the message type of orders. Default [OML].
	Message OrderMessage
	// Version is the HL7 version declared in orders. Default 2.5.1.
	Version string
	// Processing is P for production, T for tests, D for debugging. Default P.
	Processing string
	// Charset is the character set of orders, and of messages that declare none. Default UTF-8.
	Charset er7.Charset
	// MaxBytes is the largest accepted message, in bytes. Default [er7.DefaultMaxBytes].
	MaxBytes int
	// Zone is the time zone of sent times and of received times without an offset. If the offset of MSH-7 differs from
	// that of the zone, the message's times have the offset of MSH-7. Default UTC.
	Zone *time.Location
	// Number returns the placer order number of an order. It must be unique and always the same for an order. Default:
	// 16 letters and digits derived from the order id.
	Number func(o orders.Order) string
	// CodeSystem is the name of the laboratory's code system in orders. Default L.
	CodeSystem string
	// TestCode returns the laboratory's code of a marker. Default: its provider id, else its slug, in CodeSystem.
	TestCode func(m catalogue.Marker) er7.Code
	// LOINC maps the laboratory's result codes to LOINC. Codes that are sent with a LOINC code need no entry.
	LOINC map[string]string
	// Tests maps test codes of reports to the ordered codes, if they differ.
	Tests map[string]string
	// Flags maps additional flags of the laboratory to interpretations.
	Flags map[string]labresult.Interpretation
	// Statuses maps the status of a status message (ORC-25, else ORC-5) to a trigger. Default: IP is SampleReceived.
	Statuses map[string]orders.Trigger
	// Insurance returns the insurance of an order; see [InsuranceOf]. Default: orders have no insurance.
	Insurance func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (Insurance, error)
	// Documents stores received documents. [Reports] stores them for an orders.Service. Default: they stay in the
	// messages of the journal.
	Documents Documents
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Log receives errors. Default: slog.Default().
	Log *slog.Logger
}

// Insurance is the insurance of an order in HL7 terms.
type Insurance struct {
	healthlab.Private

	// PlanID, CompanyID and CompanyName are the payor's.
	PlanID, CompanyID, CompanyName string
	CompanyAddress                 er7.Address
	GroupNumber, PolicyNumber      string
	// Insured is the insured person, and Relationship the relation to the patient: SEL for the patient, SPO, CHD or
	// OTH.
	Insured      er7.Name
	InsuredDOB   healthlab.Date
	Relationship string
}

// InsuranceOf converts a coverage to the fields of an order message.
func InsuranceOf(c people.Coverage) Insurance {
	r := c.Record
	relationship := map[people.Relationship]string{people.RelationSelf: "SEL", people.RelationSpouse: "SPO"}[r.Relationship]
	a := r.Company.Address
	return Insurance{
		PlanID: r.PayorCode, CompanyID: r.PayorCode, CompanyName: r.Company.Name,
		CompanyAddress: er7.Address{Street: a.FirstLine, Other: text(a.SecondLine), City: a.City, State: a.State, Zip: a.Zip, Country: a.Country},
		GroupNumber:    text(r.GroupID), PolicyNumber: r.MemberID,
		Insured: er7.Name{Family: r.Insured.LastName, Given: r.Insured.FirstName}, InsuredDOB: r.Insured.DOB,
		Relationship: cmp.Or(relationship, "OTH"),
	}
}

// Documents stores documents. Put may be called again with the same document id. Implementations must be safe for
// concurrent use. If Put fails, the message is not acknowledged, and the laboratory sends it again.
type Documents interface {
	Put(ctx context.Context, d Document) error
}

// Reports implements [Documents]. It stores PDF files as reports of their orders, with
// [orders.Files.StoreReport]. Other files, and those of erased orders, stay in the journal, inside the message.
//
// A PDF counts as the report of all results of an order ([exchange.Message.ReportFile]) if it is the newest document
// of the order, and the only one in a message with all tests of the order. A PDF that arrives after the order is
// completed is reported as a correction.
type Reports func(ctx context.Context, team healthlab.TeamID, order orders.OrderID, id string, pdf []byte) error

// Put implements [Documents].
func (keep Reports) Put(ctx context.Context, d Document) error {
	if d.ContentType != "application/pdf" {
		return nil
	}
	err := keep(ctx, d.Team, d.Order, d.ID, d.Data)
	if kind := healthlab.KindOf(err); kind == healthlab.NotFound || kind == healthlab.Invalid {
		return nil // a repeat would have the same error
	}
	return err
}

// Document is a document of a result. Printing or logging it shows no content.
type Document struct {
	healthlab.Private

	// ID is equal for repeats of a document of an order.
	ID    string
	Team  healthlab.TeamID
	Order orders.OrderID
	// Title is the title that the laboratory has given the document.
	Title       string
	ContentType string
	Data        []byte
}

func (o *Options) withDefaults() Options {
	out := Options{}
	if o != nil {
		out = *o
	}
	def := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	def((*string)(&out.Message), string(OML))
	def(&out.Version, "2.5.1")
	def(&out.Processing, "P")
	def((*string)(&out.Charset), string(er7.UTF8))
	def(&out.CodeSystem, "L")
	out.Zone = cmp.Or(out.Zone, time.UTC)
	if out.Number == nil {
		out.Number = func(o orders.Order) string { return digestID(o.ID.UUID[:]) }
	}
	if out.TestCode == nil {
		system := out.CodeSystem
		out.TestCode = func(m catalogue.Marker) er7.Code {
			code := er7.Code{Code: m.Slug, Text: m.Name, System: system}
			if m.ProviderID != nil && *m.ProviderID != "" {
				code.Code = *m.ProviderID
			}
			return code
		}
	}
	if out.Statuses == nil {
		out.Statuses = map[string]orders.Trigger{"IP": orders.SampleReceived}
	}
	if out.Now == nil {
		out.Now = time.Now
	}
	out.Log = cmp.Or(out.Log, slog.Default())
	return out
}

func (o *Options) parsing() *er7.Options {
	return &er7.Options{MaxBytes: o.MaxBytes, Charset: o.Charset}
}

// digestID returns 16 letters and digits made from the hash of the parts.
func digestID(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
		h.Write([]byte{0})
	}
	return base32.StdEncoding.EncodeToString(h.Sum(nil)[:10])
}
