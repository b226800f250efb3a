package documents

// DocumentKind is what a document is for.
type DocumentKind string

// The documents of an order.
const (
	// RequisitionForm asks a laboratory to test a sample; it goes with the patient or
	// with the sample.
	RequisitionForm DocumentKind = "requisition"
	// SpecimenLabels are stuck on the tubes.
	SpecimenLabels DocumentKind = "labels"
	// CollectionInstructions tell a patient how to prepare, and how to take a sample.
	CollectionInstructions DocumentKind = "collection_instructions"
	// BeneficiaryNotice tells a patient, before the draw, what their insurance will
	// probably not pay: an advance beneficiary notice.
	BeneficiaryNotice DocumentKind = "abn"
	// ResultsReport is what came out.
	ResultsReport DocumentKind = "results"
)

// kinds lists the documents of an order in the order in which they are needed.
var kinds = []DocumentKind{RequisitionForm, BeneficiaryNotice, CollectionInstructions, SpecimenLabels, ResultsReport}
