package fhir

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/documents"
)

type documentReference struct {
	head
	Identifier []identifier      `json:"identifier"`
	Status     string            `json:"status"`
	Type       concept           `json:"type"`
	Category   []concept         `json:"category"`
	Subject    reference         `json:"subject"`
	Date       string            `json:"date,omitempty"`
	Content    []documentContent `json:"content"`
	Context    documentContext   `json:"context"`
}

type documentContent struct {
	Attachment attachment `json:"attachment"`
}

type documentContext struct {
	Related []reference `json:"related"`
}

// document is a kind of document that an order can have.
type document struct {
	kind  documents.DocumentKind
	key   string // last part of the id of a DocumentReference
	title string
	loinc *coding // type of the document; nil if LOINC has no code for it
	print func(*documents.Service, context.Context, healthlab.TeamID, orders.OrderID) ([]byte, error)
}

var documentKinds = []document{
	{documents.RequisitionForm, "requisition", "Requisition", nil, (*documents.Service).Requisition},
	{documents.BeneficiaryNotice, "abn", "Advance beneficiary notice", nil, (*documents.Service).CoverageNotice},
	{documents.CollectionInstructions, "instructions", "Collection instructions", nil, (*documents.Service).OrderInstructions},
	{documents.ResultsReport, "results", "Report of results", &coding{loinc, "11502-2", "Laboratory report"}, (*documents.Service).Report},
}

const pdfType = "application/pdf"

// documents returns a DocumentReference for each document that can be printed for an order. Labels are left out,
// because printing one requires a time of collection.
func (s *server) documents(ctx context.Context, r *orders.Record) (out []match, err error) {
	list, err := s.Documents.List(ctx, r.TeamID, r.ID)
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	for _, has := range list {
		for _, d := range documentKinds {
			if d.kind != has {
				continue
			}
			id := r.ID.String() + "." + d.key
			own := coding{s.URL + "/CodeSystem/document", d.key, d.title}
			kindOf := coding{"http://terminology.hl7.org/CodeSystem/v3-NullFlavor", "UNK", "unknown"}
			if d.loinc != nil {
				kindOf = *d.loinc
			}
			x := &documentReference{
				head:       head{ResourceType: "DocumentReference", ID: id, Meta: meta{Profile: []string{usCore + "documentreference"}}},
				Identifier: []identifier{{System: s.URL + "/NamingSystem/document", Value: id}}, Status: "current",
				Type: concept{Coding: []coding{kindOf}, Text: d.title}, Category: []concept{{Coding: []coding{own}, Text: d.title}}, Subject: personReference(r.UserID),
				Content: []documentContent{{attachment{ContentType: pdfType, URL: s.URL + "/Binary/" + id, Title: d.title}}},
				Context: documentContext{Related: requestReference(r)},
			}
			m := match{resource: x, codes: x.Type.Coding, categories: []coding{own}, status: x.Status}
			if d.kind == documents.ResultsReport {
				x.Date = instant(r.LatestReportAt)
				x.Meta.LastUpdated = x.Date
				m.updated, m.when = r.LatestReportAt, span{r.LatestReportAt, r.LatestReportAt}
			}
			out = append(out, m)
		}
	}
	return out, nil
}

type binaryResource struct {
	ResourceType string `json:"resourceType"`
	ID           string `json:"id"`
	ContentType  string `json:"contentType"`
	Data         []byte `json:"data"`
}

// binary answers with the content of a document: as a Binary if the request accepts FHIR, else as a PDF file.
func (s *server) binary(w http.ResponseWriter, r *http.Request, by caller) error {
	may, err := s.rightsOf(r)
	if err != nil {
		return err
	}
	if !may.reads("Binary") && !may.reads("DocumentReference") {
		return lacking(w, "system/DocumentReference.r")
	}
	id := r.PathValue("id")
	order, key, _ := strings.Cut(id, ".")
	held, err := s.record(r.Context(), by, order)
	var pdf []byte
	if err == nil {
		err = healthlab.NotFound
		for _, d := range documentKinds {
			if d.key == key {
				pdf, err = d.print(s.Documents, r.Context(), by.Team, held.ID)
			}
		}
	}
	if errors.Is(err, healthlab.NotFound) {
		return refuseUnknown(w, "Binary")
	}
	if err != nil {
		return fmt.Errorf("print document: %w", err)
	}
	if strings.Contains(r.Header.Get("Accept"), "fhir+json") {
		return write(w, http.StatusOK, binaryResource{"Binary", id, pdfType, pdf})
	}
	w.Header().Set("Content-Type", pdfType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if _, err := w.Write(pdf); err != nil {
		return fmt.Errorf("send document: %w", err)
	}
	return nil
}
