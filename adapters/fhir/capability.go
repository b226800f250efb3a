package fhir

import "slices"

type capabilityStatement struct {
	ResourceType   string           `json:"resourceType"`
	Status         string           `json:"status"`
	Date           string           `json:"date"`
	Kind           string           `json:"kind"`
	Implementation implementation   `json:"implementation"`
	FHIRVersion    string           `json:"fhirVersion"`
	Format         []string         `json:"format"`
	Rest           []restCapability `json:"rest"`
}

type implementation struct {
	Description string `json:"description"`
	URL         string `json:"url"`
}

type restCapability struct {
	Mode      string               `json:"mode"`
	Security  *security            `json:"security,omitempty"`
	Resource  []resourceCapability `json:"resource"`
	Operation []operation          `json:"operation,omitempty"`
}

type resourceCapability struct {
	Type             string        `json:"type"`
	SupportedProfile []string      `json:"supportedProfile,omitempty"`
	Interaction      []interaction `json:"interaction"`
	ConditionalRead  string        `json:"conditionalRead,omitempty"`
	SearchInclude    []string      `json:"searchInclude,omitempty"`
	SearchRevInclude []string      `json:"searchRevInclude,omitempty"`
	SearchParam      []searchParam `json:"searchParam,omitempty"`
	Operation        []operation   `json:"operation,omitempty"`
}

type security struct {
	Service     []concept `json:"service,omitempty"`
	Description string    `json:"description"`
}

type operation struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
}

type interaction struct {
	Code string `json:"code"`
}

type searchParam struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// capabilityDate is the day on which the capability statement last changed.
const capabilityDate = "2026-11-29"

var paramTypes = map[string]string{
	"_id": "token", "_lastUpdated": "date", "patient": "reference", "subject": "reference", "code": "token", "category": "token", "date": "date", "authored": "date", "status": "token",
	"interval": "token", "identifier": "token",
}

// capability returns the CapabilityStatement: which resources and operations this server supports.
func (s *server) capability() capabilityStatement {
	out := capabilityStatement{
		ResourceType: "CapabilityStatement", Status: "active", Date: capabilityDate, Kind: "instance", FHIRVersion: "4.0.1",
		Format: []string{"json"}, Implementation: implementation{"Health data and laboratory results of the team of an API key", s.URL},
		Rest: []restCapability{{Mode: "server"}},
	}
	kinds := s.kinds()
	if s.Exports != nil {
		kinds = append(kinds, s.groupKind())
	}
	for _, k := range kinds {
		r := resourceCapability{Type: k.name, SupportedProfile: k.profiles, Interaction: []interaction{{"read"}, {"search-type"}}, ConditionalRead: "not-match"}
		for param := range includes[k.name] {
			r.SearchInclude = append(r.SearchInclude, k.name+":"+param)
		}
		slices.Sort(r.SearchInclude)
		if k.ofOrder != nil && k.isTarget() {
			r.SearchRevInclude = []string{provenanceOf}
		}
		for _, name := range k.params {
			r.SearchParam = append(r.SearchParam, searchParam{name, paramTypes[name]})
		}
		if k.name == "Patient" {
			r.Operation = []operation{{"everything", "http://hl7.org/fhir/OperationDefinition/Patient-everything"}}
			if s.Exports != nil {
				r.Operation = append(r.Operation, operation{"export", "http://hl7.org/fhir/uv/bulkdata/OperationDefinition/patient-export"})
			}
		}
		if k.name == "Group" {
			r.Operation = []operation{{"export", "http://hl7.org/fhir/uv/bulkdata/OperationDefinition/group-export"}}
		}
		out.Rest[0].Resource = append(out.Rest[0].Resource, r)
	}
	out.Rest[0].Security = &security{Description: "API keys of the team"}
	if s.Tokens != nil {
		out.Rest[0].Security = &security{
			Service:     []concept{conceptOf("http://terminology.hl7.org/CodeSystem/restful-security-service", "SMART-on-FHIR", "SMART-on-FHIR")},
			Description: "API keys of the team, or tokens of SMART backend services: .well-known/smart-configuration",
		}
	}
	if s.Exports != nil {
		out.Rest[0].Operation = []operation{{"export", "http://hl7.org/fhir/uv/bulkdata/OperationDefinition/export"}}
	}
	if s.Orders != nil && s.Documents != nil {
		out.Rest[0].Resource = append(out.Rest[0].Resource, resourceCapability{Type: "Binary", Interaction: []interaction{{"read"}}})
	}
	return out
}
