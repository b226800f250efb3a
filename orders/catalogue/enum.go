package catalogue

// CollectionMethod is the way in which the sample is collected. It decides the lifecycle of an order, and never
// changes.
type CollectionMethod string

// Collection methods.
const (
	// Testkit is a kit sent to the patient, who sends the sample to the lab.
	Testkit CollectionMethod = "testkit"
	// WalkInTest is a visit of the patient to a patient service center.
	WalkInTest CollectionMethod = "walk_in_test"
	// AtHomePhlebotomy is a visit of a phlebotomist to the patient.
	AtHomePhlebotomy CollectionMethod = "at_home_phlebotomy"
	// OnSiteCollection is a draw by the team's own staff.
	OnSiteCollection CollectionMethod = "on_site_collection"
)

// CollectionMethods returns all collection methods, in a fixed order.
func CollectionMethods() []CollectionMethod {
	return []CollectionMethod{Testkit, WalkInTest, AtHomePhlebotomy, OnSiteCollection}
}

// SampleType is the kind of sample that a test needs.
type SampleType string

// Sample types.
const (
	DriedBloodSpot SampleType = "dried_blood_spot"
	ArmCollector   SampleType = "arm_collector"
	Serum          SampleType = "serum"
	Saliva         SampleType = "saliva"
	Urine          SampleType = "urine"
	Stool          SampleType = "stool"
)

// LabTestStatus is the state of a lab test's definition. Only an active test can be ordered; orders of an
// inactive test continue.
type LabTestStatus string

// Lab test statuses.
const (
	LabTestActive          LabTestStatus = "active"
	LabTestPendingApproval LabTestStatus = "pending_approval"
	LabTestInactive        LabTestStatus = "inactive"
)

// MarkerType distinguishes a single measurement from a panel of several.
type MarkerType string

// Marker types.
const (
	Biomarker MarkerType = "biomarker"
	Panel     MarkerType = "panel"
)

// QuestionType is the kind of answer to a question at order entry.
type QuestionType string

// Question types.
const (
	ChoiceQuestion      QuestionType = "choice"
	TextQuestion        QuestionType = "text"
	NumericQuestion     QuestionType = "numeric"
	MultiChoiceQuestion QuestionType = "multi_choice"
)

// UnmarshalText reads a question type; multiple_choice is an alias of multi_choice.
func (q *QuestionType) UnmarshalText(b []byte) error {
	*q = QuestionType(b)
	if *q == "multiple_choice" {
		*q = MultiChoiceQuestion
	}
	return nil
}

// BillingType is the party that pays.
type BillingType string

// Billing types.
const (
	// ClientBill invoices the team.
	ClientBill BillingType = "client_bill"
	// CommercialInsurance bills the patient's insurer.
	CommercialInsurance BillingType = "commercial_insurance"
	// PatientBillPassthrough charges the patient a price through the service.
	PatientBillPassthrough BillingType = "patient_bill_passthrough"
	// PatientBill is a bill from the lab to the patient.
	PatientBill BillingType = "patient_bill"
)

// LabAccountStatus is the state of an account at a lab. Only an active account can order.
type LabAccountStatus string

// Lab account statuses.
const (
	LabAccountActive        LabAccountStatus = "active"
	LabAccountPending       LabAccountStatus = "pending"
	LabAccountSuspended     LabAccountStatus = "suspended"
	LabAccountReadyToLaunch LabAccountStatus = "ready_to_launch"
)

// DelegatedFlow decides whose physicians order and who follows up critical results.
type DelegatedFlow string

// Delegated flows.
const (
	// OrderDelegated: the team's physicians order, and the service follows up critical results.
	OrderDelegated DelegatedFlow = "order_delegated"
	// ResultDelegated: the service's physicians order, and the team follows up critical results.
	ResultDelegated DelegatedFlow = "result_delegated"
	// FullyDelegated: the team's physicians order, and the team follows up critical results.
	FullyDelegated DelegatedFlow = "fully_delegated"
	// NotDelegated: the service's physicians order, and the service follows up critical results.
	NotDelegated DelegatedFlow = "not_delegated"
)

// BillingTypes returns all billing types.
func BillingTypes() []BillingType {
	return []BillingType{ClientBill, CommercialInsurance, PatientBillPassthrough, PatientBill}
}
