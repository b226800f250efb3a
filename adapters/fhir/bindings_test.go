package fhir_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// elements are the elements of what the mount serves, by type: name, name:type, or name:type=binding. The binding of
// a code is a key of valueSets, and that of a CodeableConcept or a Quantity has keys of codeSystems, with bars between
// them. An element that is not here is an error, so that a new one is looked up.
// Source: the page of each type, such as https://hl7.org/fhir/R4/observation.html and, of data types,
// https://hl7.org/fhir/R4/datatypes.html.
var elements = map[string]string{
	"Appointment": "identifier:Identifier status:code=appointmentstatus appointmentType:CodeableConcept start end created patientInstruction " +
		"basedOn:Reference participant:Appointment.participant",
	"Appointment.participant": "actor:Reference status:code=participationstatus",
	"Binary":                  "contentType:code=mimetypes data",
	"Bundle":                  "type:code=bundle-type total link:Bundle.link entry:Bundle.entry",
	"Bundle.link":             "relation url",
	"Bundle.entry":            "fullUrl resource:Resource search:Bundle.entry.search request:Bundle.entry.request",
	"Bundle.entry.search":     "mode:code=search-entry-mode",
	"Bundle.entry.request":    "method:code=http-verb url",
	"CapabilityStatement": "status:code=publication-status date kind:code=capability-statement-kind implementation:CapabilityStatement.implementation " +
		"fhirVersion:code=FHIR-version format:code=mimetypes rest:CapabilityStatement.rest",
	"CapabilityStatement.implementation": "description url",
	"CapabilityStatement.rest": "mode:code=restful-capability-mode security:CapabilityStatement.rest.security resource:CapabilityStatement.rest.resource " +
		"operation:CapabilityStatement.rest.operation",
	"CapabilityStatement.rest.security": "service:CodeableConcept=restful-security-service description",
	"CapabilityStatement.rest.resource": "type:code=resource-types supportedProfile interaction:CapabilityStatement.rest.interaction conditionalRead:code=conditional-read-status " +
		"searchInclude searchRevInclude searchParam:CapabilityStatement.rest.searchParam operation:CapabilityStatement.rest.operation",
	"CapabilityStatement.rest.interaction": "code:code=type-restful-interaction",
	"CapabilityStatement.rest.searchParam": "name type:code=search-param-type",
	"CapabilityStatement.rest.operation":   "name definition",
	"Consent": "status:code=consent-state-codes scope:CodeableConcept=consentscope category:CodeableConcept=consent-category patient:Reference dateTime " +
		"policyRule:CodeableConcept=v3-ActCode provision:Consent.provision",
	"Consent.provision":       "type:code=consent-provision-type period:Period actor:Consent.provision.actor",
	"Consent.provision.actor": "role:CodeableConcept=v3-ParticipationType reference:Reference",
	"Coverage": "status:code=fm-status subscriber:Reference subscriberId beneficiary:Reference relationship:CodeableConcept=subscriber-relationship " +
		"period:Period payor:Reference class:Coverage.class order",
	"Coverage.class":    "type:CodeableConcept=coverage-class value",
	"Device":            "identifier:Identifier status:code=device-status manufacturer deviceName:Device.deviceName modelNumber type:CodeableConcept=own version:Device.version patient:Reference",
	"Device.deviceName": "name type:code=device-nametype",
	"Device.version":    "value",
	"DiagnosticReport": "identifier:Identifier basedOn:Reference status:code=diagnostic-report-status category:CodeableConcept=v2-0074 code:CodeableConcept=own " +
		"subject:Reference effectiveDateTime _effectiveDateTime:Element issued performer:Reference specimen:Reference result:Reference",
	"DocumentReference": "identifier:Identifier status:code=document-reference-status type:CodeableConcept=loinc|v3-NullFlavor category:CodeableConcept=own " +
		"subject:Reference date content:DocumentReference.content context:DocumentReference.context",
	"DocumentReference.content": "attachment:Attachment",
	"DocumentReference.context": "related:Reference",
	"Group":                     "identifier:Identifier active type:code=group-type actual quantity",
	"Observation": "basedOn:Reference status:code=observation-status category:CodeableConcept=observation-category code:CodeableConcept=loinc|own " +
		"subject:Reference effectiveDateTime effectivePeriod:Period issued valueQuantity:Quantity=ucum valueCodeableConcept:CodeableConcept=snomed|loinc|icd-10-cm " +
		"valueString dataAbsentReason:CodeableConcept=data-absent-reason interpretation:CodeableConcept=v3-ObservationInterpretation performer:Reference " +
		"note:Annotation specimen:Reference method:CodeableConcept=observation-statistics|snomed|loinc referenceRange:Observation.referenceRange " +
		"component:Observation.component",
	"Observation.referenceRange": "low:Quantity=ucum high:Quantity=ucum text",
	"Observation.component":      "code:CodeableConcept=loinc|own valueQuantity:Quantity=ucum valueSampledData:SampledData dataAbsentReason:CodeableConcept=data-absent-reason",
	"OperationOutcome":           "issue:OperationOutcome.issue",
	"OperationOutcome.issue":     "severity:code=issue-severity code:code=issue-type diagnostics expression",
	"Organization":               "identifier:Identifier active type:CodeableConcept=organization-type name telecom:ContactPoint address:Address",
	"Patient":                    "identifier:Identifier name:HumanName telecom:ContactPoint gender:code=administrative-gender birthDate address:Address",
	"Practitioner":               "identifier:Identifier name:HumanName",
	"Provenance":                 "target:Reference recorded agent:Provenance.agent",
	"Provenance.agent":           "type:CodeableConcept=provenance-participant-type who:Reference",
	"ServiceRequest": "identifier:Identifier status:code=request-status intent:code=request-intent category:CodeableConcept=snomed priority:code=request-priority " +
		"code:CodeableConcept=own subject:Reference authoredOn requester:Reference reasonCode:CodeableConcept=icd-10-cm note:Annotation",
	"Specimen": "identifier:Identifier accessionIdentifier:Identifier status:code=specimen-status type:CodeableConcept=snomed|loinc subject:Reference " +
		"receivedTime request:Reference collection:Specimen.collection container:Specimen.container condition:CodeableConcept=snomed|loinc note:Annotation",
	"Specimen.collection": "collectedDateTime method:CodeableConcept=snomed|loinc bodySite:CodeableConcept=snomed|loinc",
	"Specimen.container":  "type:CodeableConcept=snomed|loinc additiveCodeableConcept:CodeableConcept=snomed|loinc",

	"Address":      "use:code=address-use type:code=address-type line city state postalCode country",
	"Annotation":   "text",
	"Attachment":   "contentType:code=mimetypes url title",
	"ContactPoint": "system:code=contact-point-system value use:code=contact-point-use",
	"Element":      "",
	"Extension":    "url valueCode:code=data-absent-reason",
	"HumanName":    "use:code=name-use family given",
	"Identifier":   "use:code=identifier-use system value",
	"Meta":         "versionId lastUpdated profile",
	"Period":       "start end",
	"Quantity":     "value comparator:code=quantity-comparator unit system code",
	"Reference":    "reference identifier:Identifier display",
	"SampledData":  "origin:Quantity=ucum period dimensions data",
}

// everywhere are the elements that every resource or element can have.
const everywhere = " resourceType id meta:Meta extension:Extension"

// unserved are the codes that no resource has. A component without a value has a reason, and no data is without one.
var unserved = []string{"Address.type", "Address.use", "ContactPoint.use", "HumanName.use", "Identifier.use", "Observation.component.dataAbsentReason"}

// valueSets are the members of the value sets to which codes are bound.
// Source: https://hl7.org/fhir/R4/valueset-NAME.html, version 4.0.1.
var valueSets = map[string]string{
	"FHIR-version":              "0.01 0.05 0.06 0.11 0.0.80 0.0.81 0.0.82 0.4.0 0.5.0 1.0.0 1.0.1 1.0.2 1.1.0 1.4.0 1.6.0 1.8.0 3.0.0 3.0.1 3.3.0 3.5.0 4.0.0 4.0.1",
	"address-type":              "postal physical both",
	"address-use":               "home work temp old billing",
	"administrative-gender":     "male female other unknown",
	"appointmentstatus":         "proposed pending booked arrived fulfilled cancelled noshow entered-in-error checked-in waitlist",
	"bundle-type":               "document message transaction transaction-response batch batch-response history searchset collection",
	"capability-statement-kind": "instance capability requirements",
	"consent-provision-type":    "deny permit",
	"consent-state-codes":       "draft proposed active rejected inactive entered-in-error",
	"contact-point-system":      "phone fax email pager url sms other",
	"contact-point-use":         "home work temp old mobile",
	"data-absent-reason": "unknown asked-unknown temp-unknown not-asked asked-declined masked not-applicable unsupported as-text error not-a-number " +
		"negative-infinity positive-infinity not-performed not-permitted",
	"device-nametype":           "udi-label-name user-friendly-name patient-reported-name manufacturer-name model-name other",
	"device-status":             "active inactive entered-in-error unknown",
	"diagnostic-report-status":  "registered partial preliminary final amended corrected appended cancelled entered-in-error unknown",
	"document-reference-status": "current superseded entered-in-error",
	"fm-status":                 "active cancelled draft entered-in-error",
	"group-type":                "person animal practitioner device medication substance",
	"http-verb":                 "GET HEAD POST PUT DELETE PATCH",
	"identifier-use":            "usual official temp secondary old",
	"issue-severity":            "fatal error warning information",
	"issue-type": "invalid structure required value invariant security login unknown expired forbidden suppressed processing not-supported duplicate " +
		"multiple-matches not-found deleted too-long code-invalid extension too-costly business-rule conflict transient lock-error no-store " +
		"exception timeout incomplete throttled informational",
	"name-use":            "usual official temp nickname anonymous old maiden",
	"observation-status":  "registered preliminary final amended corrected cancelled entered-in-error unknown",
	"participationstatus": "accepted declined tentative needs-action",
	"publication-status":  "draft active retired unknown",
	"quantity-comparator": "< <= >= >",
	"request-intent":      "proposal plan directive order original-order reflex-order filler-order instance-order option",
	"request-priority":    "routine urgent asap stat",
	"request-status":      "draft active on-hold revoked completed entered-in-error unknown",
	"resource-types": "Account ActivityDefinition AdverseEvent AllergyIntolerance Appointment AppointmentResponse AuditEvent Basic Binary " +
		"BiologicallyDerivedProduct BodyStructure Bundle CapabilityStatement CarePlan CareTeam CatalogEntry ChargeItem ChargeItemDefinition " +
		"Claim ClaimResponse ClinicalImpression CodeSystem Communication CommunicationRequest CompartmentDefinition Composition ConceptMap " +
		"Condition Consent Contract Coverage CoverageEligibilityRequest CoverageEligibilityResponse DetectedIssue Device DeviceDefinition " +
		"DeviceMetric DeviceRequest DeviceUseStatement DiagnosticReport DocumentManifest DocumentReference DomainResource " +
		"EffectEvidenceSynthesis Encounter Endpoint EnrollmentRequest EnrollmentResponse EpisodeOfCare EventDefinition Evidence " +
		"EvidenceVariable ExampleScenario ExplanationOfBenefit FamilyMemberHistory Flag Goal GraphDefinition Group GuidanceResponse " +
		"HealthcareService ImagingStudy Immunization ImmunizationEvaluation ImmunizationRecommendation ImplementationGuide InsurancePlan " +
		"Invoice Library Linkage List Location Measure MeasureReport Media Medication MedicationAdministration MedicationDispense " +
		"MedicationKnowledge MedicationRequest MedicationStatement MedicinalProduct MedicinalProductAuthorization " +
		"MedicinalProductContraindication MedicinalProductIndication MedicinalProductIngredient MedicinalProductInteraction " +
		"MedicinalProductManufactured MedicinalProductPackaged MedicinalProductPharmaceutical MedicinalProductUndesirableEffect " +
		"MessageDefinition MessageHeader MolecularSequence NamingSystem NutritionOrder Observation ObservationDefinition " +
		"OperationDefinition OperationOutcome Organization OrganizationAffiliation Parameters Patient PaymentNotice PaymentReconciliation " +
		"Person PlanDefinition Practitioner PractitionerRole Procedure Provenance Questionnaire QuestionnaireResponse RelatedPerson " +
		"RequestGroup ResearchDefinition ResearchElementDefinition ResearchStudy ResearchSubject Resource RiskAssessment " +
		"RiskEvidenceSynthesis Schedule SearchParameter ServiceRequest Slot Specimen SpecimenDefinition StructureDefinition StructureMap " +
		"Subscription Substance SubstanceNucleicAcid SubstancePolymer SubstanceProtein SubstanceReferenceInformation " +
		"SubstanceSourceMaterial SubstanceSpecification SupplyDelivery SupplyRequest Task TerminologyCapabilities TestReport TestScript " +
		"ValueSet VerificationResult VisionPrescription",
	"conditional-read-status":  "not-supported modified-since not-match full-support",
	"restful-capability-mode":  "client server",
	"search-entry-mode":        "match include outcome",
	"search-param-type":        "number date string token reference composite quantity uri special",
	"specimen-status":          "available unavailable unsatisfactory entered-in-error",
	"type-restful-interaction": "read vread update patch delete history-instance history-type create search-type",
	// The value set is all of BCP 13: these are those that are served. CapabilityStatement.format may be json instead.
	"mimetypes": "application/pdf application/fhir+json json",
}

// terminology is where the code systems of HL7 begin.
const terminology = "http://terminology.hl7.org/CodeSystem/"

// codeSystems are the members of code systems, whose address is terminology and the name.
// Source: https://hl7.org/fhir/R4/codesystem-NAME.html, https://hl7.org/fhir/R4/v3/NAME/cs.html and
// https://hl7.org/fhir/R4/v2/0074/index.html, version 4.0.1. Of two systems there are the members of a value set:
// of v3-ActCode https://hl7.org/fhir/R4/v3/ActConsentDirective/vs.html, because Consent.policyRule is bound to
// policies of jurisdictions and may have other codes, and of v3-ParticipationType
// https://hl7.org/fhir/R4/valueset-security-role-type.html.
var codeSystems = map[string]string{
	"consentscope":   "adr research patient-privacy treatment",
	"coverage-class": "group subgroup plan subplan class subclass sequence rxbin rxpcn rxid rxgroup",
	"data-absent-reason": "unknown asked-unknown temp-unknown not-asked asked-declined masked not-applicable unsupported as-text error not-a-number " +
		"negative-infinity positive-infinity not-performed not-permitted",
	"observation-category": "social-history vital-signs imaging laboratory procedure survey exam therapy activity",
	"observation-statistics": "average maximum minimum count total-count median std-dev sum variance 20-percent 80-percent 4-lower 4-upper 4-dev 5-1 5-2 5-3 5-4 " +
		"skew kurtosis regression",
	"organization-type":           "prov dept team govt ins pay edu reli crs cg bus other",
	"provenance-participant-type": "enterer performer author verifier legal attester informant custodian assembler composer",
	"restful-security-service":    "OAuth SMART-on-FHIR NTLM Basic Kerberos Certificates",
	"subscriber-relationship":     "child parent spouse common other self injured",
	"v2-0074": "AU BG BLB CG CH CP CT CTH CUS EC EN GE HM ICU IMG IMM LAB MB MCB MYC NMR NMS NRS OSL OT OTH OUS PAR PAT PF PHR PHY PT RAD RC RT " +
		"RUS RX SP SR TX URN VR VUS XRC",
	"v3-NullFlavor": "NI INV DER OTH NINF PINF UNC MSK NA UNK ASKU NAV NASK NAVU QS TRC NP",
	"v3-ObservationInterpretation": "CAR Carrier B D U W < > AC IE QCF TOX A AA HH LL H H> HU L L< LU N I MS NCL NS R SYN-R S SDD SYN-S VS EX HX LX HM IND E NEG ND POS " +
		"DET EXP UNE OBX NR RR WR",
	"v3-ParticipationType": "AUT CST INF IRCP LA TRC WIT",
	"v3-ActCode":           "EMRGONLY GRANTORCHOICE IMPLIED IMPLIEDD NOCONSENT NOPP OPTIN OPTINR OPTOUT OPTOUTE",
}

// openSystems are the code systems that are too large for a table, and ours, with the form of their codes. Of
// consent-category, https://hl7.org/fhir/R4/valueset-consent-category.html, there are the codes of LOINC.
var openSystems = map[string]struct {
	url  string
	form *regexp.Regexp
}{
	"consent-category": {"http://loinc.org", regexp.MustCompile(`^(59284-0|57016-8|57017-6|64292-6)$`)},
	"loinc":            {"http://loinc.org", regexp.MustCompile(`^(LA|LP)?[1-9][0-9]{0,6}-[0-9]$`)},
	"snomed":           {"http://snomed.info/sct", regexp.MustCompile(`^[1-9][0-9]{5,17}$`)},
	"icd-10-cm":        {"http://hl7.org/fhir/sid/icd-10-cm", regexp.MustCompile(`^[A-Z][0-9][0-9A-Z](\.[0-9A-Z]{1,4})?$`)},
	"ucum":             {"http://unitsofmeasure.org", regexp.MustCompile(`^[!-~]+$`)},
	"own":              {base + "/CodeSystem/", regexp.MustCompile(`^[a-z0-9_-]+$`)},
}

// bindings finds codes that are not in the value set of their element.
type bindings struct {
	problems []string
	seen     map[string]bool // the codes and concepts that it checked
}

func (b *bindings) resource(r object) { b.element(fmt.Sprint(r["resourceType"]), r) }

func (b *bindings) element(kind string, v object) {
	fields, ok := elements[kind]
	if !ok {
		b.problems = append(b.problems, kind+": not a type of the table")
		return
	}
	known := map[string]string{}
	for _, f := range strings.Fields(fields + everywhere) {
		name, of, _ := strings.Cut(f, ":")
		known[name] = of
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		of, ok := known[name]
		if !ok {
			b.problems = append(b.problems, kind+"."+name+": not an element of the table")
			continue
		}
		of, bound, _ := strings.Cut(of, "=")
		list, ok := v[name].([]any)
		if !ok {
			list = []any{v[name]}
		}
		for _, one := range list {
			b.value(kind+"."+name, of, bound, one)
		}
	}
}

// value checks a value of an element of a type, with its binding.
func (b *bindings) value(at, of, bound string, v any) {
	part, isObject := v.(object)
	switch {
	case isObject != (of != "" && of != "code"):
		b.problems = append(b.problems, at+": not of the type of the table")
	case of == "code":
		b.seen[at] = true
		if code, _ := v.(string); !slices.Contains(strings.Fields(valueSets[bound]), code) {
			b.problems = append(b.problems, at+": not in "+bound)
		}
	case of == "Resource":
		b.resource(part)
	case of == "CodeableConcept":
		codings, _ := part["coding"].([]any)
		for _, c := range codings {
			b.coding(at, bound, c.(object))
		}
		for name := range part {
			if name != "coding" && name != "text" {
				b.problems = append(b.problems, at+"."+name+": not an element of the table")
			}
		}
	case isObject:
		if of == "Quantity" && (part["system"] != nil || part["code"] != nil) {
			b.coding(at, bound, part)
		}
		b.element(of, part)
	}
}

// coding checks the system and the code of a Coding or a Quantity.
func (b *bindings) coding(at, bound string, c object) {
	b.seen[at] = true
	system, _ := c["system"].(string)
	code, _ := c["code"].(string)
	for _, name := range strings.Split(bound, "|") {
		open, isOpen := openSystems[name]
		switch {
		case isOpen && (system == open.url || strings.HasSuffix(open.url, "/") && strings.HasPrefix(system, open.url)):
			if open.form.MatchString(code) {
				return
			}
		case !isOpen && system == terminology+name && slices.Contains(strings.Fields(codeSystems[name]), code):
			return
		}
	}
	b.problems = append(b.problems, at+": not in "+bound)
}

// bound are the codes and concepts of the table, with what they are bound to.
func bound() map[string]string {
	out := map[string]string{}
	for kind, fields := range elements {
		for _, f := range strings.Fields(fields) {
			name, of, _ := strings.Cut(f, ":")
			if of, to, ok := strings.Cut(of, "="); ok {
				out[kind+"."+name] = of + "=" + to
			}
		}
	}
	return out
}

// outcomes gives a user orders, insurance and consents in the states that the clinic's others do not have.
func (c *clinic) outcomes(user healthlab.UserID) {
	c.t.Helper()
	ctx := c.t.Context()
	yes := true
	for _, flags := range []orders.SimulationFlags{
		{Interpretation: labresult.Normal}, {Interpretation: labresult.Abnormal}, {Interpretation: labresult.Critical, HasMissingResults: &yes},
		{ResultTypes: []labresult.Type{labresult.Range, labresult.CodedValue, labresult.Comment}},
	} {
		_, err := c.s.Exchange.Simulate(ctx, c.team, c.placed(user), "", flags)
		require.NoError(c.t, err)
	}
	_, err := c.s.Orders.Cancel(ctx, c.team, c.placed(user))
	require.NoError(c.t, err)
	c.placed(user) // an order whose sample no laboratory has yet
	for _, reports := range [][]orders.Trigger{{orders.PartialResult}, {orders.FinalResult}, {orders.FinalResult, orders.CorrectedResult}} {
		id := c.placed(user)
		_, err := c.s.Exchange.Simulate(ctx, c.team, id, orders.StatusOf(catalogue.Testkit, orders.DeliveredToLab), orders.SimulationFlags{})
		require.NoError(c.t, err)
		r, err := c.s.Orders.Record(ctx, c.team, id)
		require.NoError(c.t, err)
		for i, on := range reports {
			require.NoError(c.t, c.s.Exchange.Receive(ctx, exchange.Message{
				ID: fmt.Sprint(id, i), Team: c.team, Order: id, On: on, At: noon(0).Add(time.Duration(i) * time.Hour), Patient: orders.ReportedAs(r.PatientDetails), Results: codedReport(i),
			}))
		}
	}
	for _, relation := range []people.Relationship{people.RelationSpouse, people.RelationOther} {
		address := object{"first_line": "1 Example Street", "city": "Phoenix", "state": "AZ", "zip": "85004", "country": "US"}
		holder := object{"first_name": "Annika", "last_name": "Markerson", "phone_number": "+12175550100", "address": address}
		insured := object{"gender": "female", "dob": "1984-01-02", "email": "ann@example.org"}
		maps.Copy(insured, holder)
		c.post("/v2/user/"+user.String()+"/insurance", object{
			"payor_code": "ASPEN", "member_id": "member-marker", "relationship": relation, "is_primary": true, "insured": insured, "guarantor": holder,
		})
	}
	require.NoError(c.t, c.s.Health.Connections().WithdrawConsent(ctx, c.team, user, "manual"))
	reasons := c.s.Visits.CancellationReasons(appointment.Phlebotomy)
	_, err = c.s.Visits.Cancel(ctx, c.team, c.visited, appointment.Phlebotomy, reasons[0].ID, nil)
	require.NoError(c.t, err)
}

// served are resources of each type and each answer that the mount has, of people with a year of data.
func (c *clinic) served() (out []object) {
	c.t.Helper()
	c.tokens()
	user := c.person(c.team, "cay")
	c.live(user, prove.Counts(7, 7, 365))
	c.outcomes(c.ann)
	out = []object{
		c.get("", "/metadata", 200), c.get("team", c.group(), 200), c.get("team", "/Observation", 400), c.get("", "/Patient", 401), c.get("team", "/Patient/marker", 404),
	}
	paths := []string{"/Patient", "/Organization", "/Practitioner?_id=" + c.visited.String()}
	for _, id := range []healthlab.UserID{c.ann, c.ben, user} {
		paths = append(paths, "/Patient/"+id.String()+"/$everything")
		for _, by := range []string{"hour", "sampled"} {
			paths = append(paths, "/Observation?_count=500&interval="+by+"&date=ge"+noon(days).Format(time.DateOnly)+"&date=le"+noon(-1).Format(time.DateOnly)+"&patient="+id.String())
		}
	}
	for _, path := range paths {
		found := c.get("team", path, 200)
		require.NotEmpty(c.t, entries(found), path)
		out = append(out, found)
	}
	code, body := c.send(c.handler, "PUT", "/Patient/"+c.ann.String(), "team", "{}")
	require.Equal(c.t, http.StatusMethodNotAllowed, code)
	r := httptest.NewRequestWithContext(c.t.Context(), http.MethodGet, "/Binary/"+c.order.String()+".results", http.NoBody)
	r.Header.Set("x-service-api-key", "team")
	r.Header.Set("Accept", "application/fhir+json")
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	for _, text := range [][]byte{body, w.Body.Bytes()} {
		var one object
		require.NoError(c.t, json.Unmarshal(text, &one))
		out = append(out, one)
	}
	before := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	require.NoError(c.t, c.s.Health.Deletions().Delete(c.t.Context(), c.team, c.ben))
	out = append(out, c.download("team", c.manifest("team", c.kickOff("team", c.group()+"/$export?_type=Patient&_since="+before)).Deleted)...)
	c.scopes = organisation.Scopes{organisation.DataRead}
	return append(out, c.get("team", "/Patient", 403))
}

// Each code is in the value set of its element, and each bound element of the table is served but those that it says.
func TestBindings_everyServedCodeIsInTheValueSetOfItsElement(t *testing.T) {
	b := bindings{seen: map[string]bool{}}
	for _, r := range newClinic(t).served() {
		b.resource(r)
	}
	slices.Sort(b.problems)
	require.Empty(t, slices.Compact(b.problems))
	var rest []string
	for at := range bound() {
		if !b.seen[at] {
			rest = append(rest, at)
		}
	}
	require.ElementsMatch(t, unserved, rest)
}

// The walk reports a code that no value set has, wherever it stands, and an element that the table does not have.
func TestBindings_checkReportsCodesOutsideTheirValueSet(t *testing.T) {
	for at, binding := range bound() {
		dot := strings.LastIndex(at, ".")
		of, to, _ := strings.Cut(binding, "=")
		system, _, _ := strings.Cut(to, "|")
		url := terminology + system
		if open, ok := openSystems[system]; ok {
			url = open.url
		}
		for _, coding := range []object{{"system": url, "code": "Planted code"}, {"system": "http://planted.example.com", "code": "unknown"}, {"code": "unknown"}} {
			planted := map[string]any{"code": "planted", "CodeableConcept": object{"coding": []any{coding}}, "Quantity": coding}[of]
			b := bindings{seen: map[string]bool{}}
			b.element(at[:dot], object{at[dot+1:]: []any{planted}})
			require.Equal(t, []string{at + ": not in " + to}, b.problems)
		}
	}
	c := newClinic(t)
	found := c.get("team", "/Observation?category=laboratory&patient="+c.ann.String(), 200)
	o := entries(found)[0]
	o["status"], o["planted"] = "planted", "planted"
	o["category"].([]any)[0].(object)["coding"].([]any)[0].(object)["code"] = "planted"
	b := bindings{seen: map[string]bool{}}
	b.resource(found)
	require.Equal(t, []string{
		"Observation.category: not in observation-category", "Observation.planted: not an element of the table", "Observation.status: not in observation-status",
	}, b.problems)
}
