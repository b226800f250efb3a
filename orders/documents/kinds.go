package documents

// DocumentKind is the kind of a document.
type DocumentKind string

// Documents of an order.
const (
	// RequisitionForm asks a laboratory to test a sample; it goes with the patient or
	// with the sample.
	RequisitionForm DocumentKind = "requisition"
	// SpecimenLabels are stuck on the tubes.
	SpecimenLabels DocumentKind = "labels"
	// CollectionInstructions tell a patient how to prepare, and how to take a sample.
	CollectionInstructions DocumentKind = "collection_instructions"
	// BeneficiaryNotice is an advance beneficiary notice: it tells a patient, before the draw, which tests
	// their insurance will probably not pay.
	BeneficiaryNotice DocumentKind = "abn"
	// ResultsReport is the report of the results.
	ResultsReport DocumentKind = "results"
)

// kinds lists the documents of an order in the order in which a lab test needs them.
var kinds = []DocumentKind{RequisitionForm, BeneficiaryNotice, CollectionInstructions, SpecimenLabels, ResultsReport}
