package fhirlab

import "encoding/json"

// The elements that are read from resources of a laboratory.

type bundleIn struct {
	ResourceType string    `json:"resourceType"`
	Type         string    `json:"type"`
	Entry        []entryIn `json:"entry"`
}

type entryIn struct {
	FullURL  string          `json:"fullUrl"`
	Resource json.RawMessage `json:"resource"`
	Request  *struct {
		Method string `json:"method"`
	} `json:"request"`
}

type headIn struct {
	ResourceType string            `json:"resourceType"`
	ID           string            `json:"id"`
	Contained    []json.RawMessage `json:"contained"`
}

type codingIn struct {
	System  string `json:"system"`
	Code    string `json:"code"`
	Display string `json:"display"`
}

type conceptIn struct {
	Coding []codingIn `json:"coding"`
	Text   string     `json:"text"`
}

type identifierIn struct {
	System string    `json:"system"`
	Value  string    `json:"value"`
	Type   conceptIn `json:"type"`
}

type referenceIn struct {
	Reference  string        `json:"reference"`
	Identifier *identifierIn `json:"identifier"`
	Display    string        `json:"display"`
}

type periodIn struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

type annotationIn struct {
	Text string `json:"text"`
}

type patientIn struct {
	headIn
	Identifier []identifierIn `json:"identifier"`
	Name       []nameIn       `json:"name"`
	Gender     string         `json:"gender"`
	BirthDate  string         `json:"birthDate"`
}

type nameIn struct {
	Use    string   `json:"use"`
	Text   string   `json:"text"`
	Family string   `json:"family"`
	Given  []string `json:"given"`
	Suffix []string `json:"suffix"`
}

type requestIn struct {
	headIn
	Identifier     []identifierIn `json:"identifier"`
	Requisition    *identifierIn  `json:"requisition"`
	Status         string         `json:"status"`
	SupportingInfo []referenceIn  `json:"supportingInfo"`
	Subject        referenceIn    `json:"subject"`
}

type reportIn struct {
	headIn
	Identifier []identifierIn `json:"identifier"`
	BasedOn    []referenceIn  `json:"basedOn"`
	Status     string         `json:"status"`
	Code       conceptIn      `json:"code"`
	Subject    referenceIn    `json:"subject"`
	Effective  string         `json:"effectiveDateTime"`
	Period     *periodIn      `json:"effectivePeriod"`
	Issued     string         `json:"issued"`
	Performer  []referenceIn  `json:"performer"`
	Specimen   []referenceIn  `json:"specimen"`
	Result     []referenceIn  `json:"result"`
	Conclusion string         `json:"conclusion"`
	Presented  []struct {
		ContentType string `json:"contentType"`
		Data        []byte `json:"data"`
		URL         string `json:"url"`
	} `json:"presentedForm"`
}

type quantityIn struct {
	Value      json.Number `json:"value"`
	Comparator string      `json:"comparator"`
	Unit       string      `json:"unit"`
	Code       string      `json:"code"`
}

type valueIn struct {
	Quantity *quantityIn  `json:"valueQuantity"`
	Concept  *conceptIn   `json:"valueCodeableConcept"`
	String   *string      `json:"valueString"`
	Boolean  *bool        `json:"valueBoolean"`
	Integer  *json.Number `json:"valueInteger"`
	Range    *struct {
		Low  *quantityIn `json:"low"`
		High *quantityIn `json:"high"`
	} `json:"valueRange"`
	Ratio *struct {
		Numerator   *quantityIn `json:"numerator"`
		Denominator *quantityIn `json:"denominator"`
	} `json:"valueRatio"`
	Time             *string         `json:"valueTime"`
	DateTime         *string         `json:"valueDateTime"`
	Period           *periodIn       `json:"valuePeriod"`
	Sampled          json.RawMessage `json:"valueSampledData"`
	DataAbsentReason *conceptIn      `json:"dataAbsentReason"`
	Interpretation   []conceptIn     `json:"interpretation"`
	ReferenceRange   []rangeIn       `json:"referenceRange"`
}

type rangeIn struct {
	Low  *quantityIn `json:"low"`
	High *quantityIn `json:"high"`
	Text string      `json:"text"`
}

type observationIn struct {
	headIn
	valueIn
	Identifier []identifierIn `json:"identifier"`
	BasedOn    []referenceIn  `json:"basedOn"`
	Status     string         `json:"status"`
	Code       conceptIn      `json:"code"`
	Subject    referenceIn    `json:"subject"`
	Effective  string         `json:"effectiveDateTime"`
	Instant    string         `json:"effectiveInstant"`
	Effected   *periodIn      `json:"effectivePeriod"`
	Issued     string         `json:"issued"`
	Performer  []referenceIn  `json:"performer"`
	Note       []annotationIn `json:"note"`
	Method     *conceptIn     `json:"method"`
	Specimen   *referenceIn   `json:"specimen"`
	HasMember  []referenceIn  `json:"hasMember"`
	Component  []struct {
		valueIn
		Code conceptIn `json:"code"`
	} `json:"component"`
}

type specimenIn struct {
	headIn
	Identifier []identifierIn `json:"identifier"`
	Accession  *identifierIn  `json:"accessionIdentifier"`
	Status     string         `json:"status"`
	Type       *conceptIn     `json:"type"`
	Subject    referenceIn    `json:"subject"`
	Received   string         `json:"receivedTime"`
	Collection *struct {
		Collected string     `json:"collectedDateTime"`
		Period    *periodIn  `json:"collectedPeriod"`
		Method    *conceptIn `json:"method"`
		BodySite  *conceptIn `json:"bodySite"`
	} `json:"collection"`
	Condition []conceptIn    `json:"condition"`
	Note      []annotationIn `json:"note"`
}

type organizationIn struct {
	headIn
	Name string `json:"name"`
}
