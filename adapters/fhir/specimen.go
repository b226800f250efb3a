package fhir

import (
	"context"
	"maps"
	"slices"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

type specimen struct {
	head
	Identifier   []identifier `json:"identifier,omitempty"`
	Accession    *identifier  `json:"accessionIdentifier,omitempty"`
	Status       string       `json:"status"`
	Type         *concept     `json:"type,omitempty"`
	Subject      reference    `json:"subject"`
	ReceivedTime string       `json:"receivedTime,omitempty"`
	Request      []reference  `json:"request"`
	Collection   *collection  `json:"collection,omitempty"`
	Container    []container  `json:"container,omitempty"`
	Condition    []concept    `json:"condition,omitempty"`
	Note         []annotation `json:"note,omitempty"`
}

type collection struct {
	Collected string   `json:"collectedDateTime,omitempty"`
	Method    *concept `json:"method,omitempty"`
	BodySite  *concept `json:"bodySite,omitempty"`
}

type container struct {
	Type     *concept `json:"type,omitempty"`
	Additive *concept `json:"additiveCodeableConcept,omitempty"`
}

func samplesOf(r *orders.Record) []string {
	if r.Results == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.Results.SampleInformation))
}

func specimenReference(r *orders.Record, sample string) reference {
	return reference{Reference: "Specimen/" + ofOrderID(r.ID, "specimen", sample)}
}

// specimens returns the samples that the laboratory has reported for an order.
func (s *server) specimens(_ context.Context, r *orders.Record) (out []match, err error) {
	for _, key := range samplesOf(r) {
		data := r.Results.SampleInformation[key]
		x := &specimen{
			head:   head{ResourceType: "Specimen", ID: ofOrderID(r.ID, "specimen", key), Meta: meta{LastUpdated: instant(r.LatestReportAt)}},
			Status: "available", Type: coded(data.SpecimenType), Subject: personReference(r.UserID), Request: requestReference(r),
		}
		if id := data.SampleID; id != nil && *id != "" {
			x.Identifier = []identifier{{Value: *id}}
		}
		if number := data.ControlNumber; number != nil && *number != "" {
			x.Accession = &identifier{Value: *number}
		}
		c := collection{Method: coded(data.CollectionMethod), BodySite: coded(data.SpecimenSite)}
		var when span
		if at := data.DateCollected; at != nil {
			c.Collected, when = dateTime(*at)
		}
		if c != (collection{}) {
			x.Collection = &c
		}
		if at := data.DateReceived; at != nil {
			x.ReceivedTime, _ = dateTime(*at)
		}
		if data.ContainerType != nil || len(data.Additives) > 0 {
			held := container{Type: coded(data.ContainerType)}
			if len(data.Additives) > 0 {
				held.Additive = coded(&data.Additives[0])
			}
			x.Container = []container{held}
		}
		for i := range data.Conditions {
			x.Condition = append(x.Condition, *coded(&data.Conditions[i]))
		}
		for i := range data.RejectReasons {
			x.Status = "unsatisfactory"
			x.Note = append(x.Note, annotation{"Refused by the laboratory: " + data.RejectReasons[i].Text})
		}
		if data.Description != "" {
			x.Note = append(x.Note, annotation{data.Description})
		}
		if info := data.ClinicalInformation; info != nil && info.Notes != nil && *info.Notes != "" {
			x.Note = append(x.Note, annotation{*info.Notes})
		}
		out = append(out, match{resource: x, status: x.Status, when: when, updated: r.LatestReportAt})
	}
	return out, nil
}

func coded(c *labresult.Coded) *concept {
	if c == nil {
		return nil
	}
	return &concept{Coding: codings(c.Codes), Text: c.Text}
}
