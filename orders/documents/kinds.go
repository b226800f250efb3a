package documents

// Kind is what a document is for.
type Kind string

// The documents of an order.
const (
	// RequisitionForm asks a laboratory to test a sample; it goes with the patient or
	// with the sample.
	RequisitionForm Kind = "requisition"
	// SpecimenLabels are stuck on the tubes.
	SpecimenLabels Kind = "labels"
	// CollectionInstructions tell a patient how to prepare, and how to take a sample.
	CollectionInstructions Kind = "collection_instructions"
	// BeneficiaryNotice tells a patient, before the draw, what their insurance will
	// probably not pay: an advance beneficiary notice.
	BeneficiaryNotice Kind = "abn"
	// ResultsReport is what came out.
	ResultsReport Kind = "results"
)

// kinds lists the documents of an order in the order in which they are needed.
var kinds = []Kind{RequisitionForm, BeneficiaryNotice, CollectionInstructions, SpecimenLabels, ResultsReport}
