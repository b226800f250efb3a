package catalogue

// CollectionMethod says how the sample comes to the lab. It decides which lifecycle
// an order has, and never changes.
type CollectionMethod string

// The collection methods.
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

// CollectionMethods returns all methods, in the order of the documentation.
func CollectionMethods() []CollectionMethod {
	return []CollectionMethod{Testkit, WalkInTest, AtHomePhlebotomy, OnSiteCollection}
}

// SampleType is the kind of sample that a test needs.
type SampleType string

// The sample types.
const (
	DriedBloodSpot SampleType = "dried_blood_spot"
	ArmCollector   SampleType = "arm_collector"
	Serum          SampleType = "serum"
	Saliva         SampleType = "saliva"
	Urine          SampleType = "urine"
	Stool          SampleType = "stool"
)

// LabTestStatus is where the definition of a test stands. Only an active test can be
// ordered; orders of one that was archived go on.
type LabTestStatus string

// The lab test statuses.
const (
	LabTestActive          LabTestStatus = "active"
	LabTestPendingApproval LabTestStatus = "pending_approval"
	LabTestInactive        LabTestStatus = "inactive"
)

// MarkerType tells a single measurement from a panel of several.
type MarkerType string

// The marker types.
const (
	Biomarker MarkerType = "biomarker"
	Panel     MarkerType = "panel"
)

// QuestionType is the kind of answer that a question at order entry takes.
type QuestionType string

// The question types.
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

// BillingType says who pays.
type BillingType string

// The billing types.
const (
	// ClientBill invoices the team.
	ClientBill BillingType = "client_bill"
	// CommercialInsurance bills the patient's insurer.
	CommercialInsurance BillingType = "commercial_insurance"
	// PatientBillPassthrough is a price that the patient pays through the service.
	PatientBillPassthrough BillingType = "patient_bill_passthrough"
	// PatientBill is a bill from the lab to the patient.
	PatientBill BillingType = "patient_bill"
)

// LabAccountStatus is where an account at a lab stands. Only an active one can order.
type LabAccountStatus string

// The lab account statuses.
const (
	LabAccountActive        LabAccountStatus = "active"
	LabAccountPending       LabAccountStatus = "pending"
	LabAccountSuspended     LabAccountStatus = "suspended"
	LabAccountReadyToLaunch LabAccountStatus = "ready_to_launch"
)

// DelegatedFlow says whose physicians order and who follows up critical results.
type DelegatedFlow string

// The delegated flows.
const (
	// OrderDelegated: the team's physicians order, the service follows up.
	OrderDelegated DelegatedFlow = "order_delegated"
	// ResultDelegated: the service's physicians order, the team follows up.
	ResultDelegated DelegatedFlow = "result_delegated"
	// FullyDelegated: the team does both.
	FullyDelegated DelegatedFlow = "fully_delegated"
	// NotDelegated: the service does both.
	NotDelegated DelegatedFlow = "not_delegated"
)

// BillingTypes returns all of them.
func BillingTypes() []BillingType {
	return []BillingType{ClientBill, CommercialInsurance, PatientBillPassthrough, PatientBill}
}
