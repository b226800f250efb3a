package orders

// The enumerations of this package are open: a value that we do not know decodes and
// encodes unchanged. The Check methods of requests refuse unknown values.

// Stage is the top level of a status. An order can return to an earlier stage: from StageCollectingSample to
// StageReceived if its kit is registered after the delivery.
type Stage string

// Stages of an order.
const (
	StageReceived         Stage = "received"
	StageCollectingSample Stage = "collecting_sample"
	StageSampleWithLab    Stage = "sample_with_lab"
	StageCompleted        Stage = "completed"
	StageCancelled        Stage = "cancelled"
	StageFailed           Stage = "failed"
)

// LowLevel is the last part of a status: the state in the order's lifecycle.
type LowLevel string

// Low-level statuses. The lifecycle of a collection method decides which of them it has.
const (
	Ordered                    LowLevel = "ordered"
	RequisitionCreated         LowLevel = "requisition_created"
	RequisitionBypassed        LowLevel = "requisition_bypassed"
	AwaitingRegistration       LowLevel = "awaiting_registration"
	Registered                 LowLevel = "registered"
	TransitCustomer            LowLevel = "transit_customer"
	OutForDelivery             LowLevel = "out_for_delivery"
	WithCustomer               LowLevel = "with_customer"
	TransitLab                 LowLevel = "transit_lab"
	DeliveredToLab             LowLevel = "delivered_to_lab"
	ProblemInTransitCustomer   LowLevel = "problem_in_transit_customer"
	ProblemInTransitLab        LowLevel = "problem_in_transit_lab"
	FailureToDeliverToCustomer LowLevel = "failure_to_deliver_to_customer"
	FailureToDeliverToLab      LowLevel = "failure_to_deliver_to_lab"
	LabProcessingBlocked       LowLevel = "lab_processing_blocked"
	AppointmentPending         LowLevel = "appointment_pending"
	AppointmentScheduled       LowLevel = "appointment_scheduled"
	AppointmentCancelled       LowLevel = "appointment_cancelled"
	DrawCompleted              LowLevel = "draw_completed"
	PartialResults             LowLevel = "partial_results"
	Completed                  LowLevel = "completed"
	Corrected                  LowLevel = "corrected"
	RedrawAvailable            LowLevel = "redraw_available"
	SampleError                LowLevel = "sample_error"
	Lost                       LowLevel = "lost"
	Cancelled                  LowLevel = "cancelled"
	DoNotProcess               LowLevel = "do_not_process"
)

// StatusDetail is a finer reason for a status.
type StatusDetail string

// Status details; [StatusDetails] lists them by status. Errors in a date or in demographics can be repaired.
const (
	FulfillmentError                  StatusDetail = "fulfillment_error"
	DateOfCollectionUnspecified       StatusDetail = "date_of_collection_unspecified"
	DemographicInformationUnspecified StatusDetail = "demographic_information_unspecified"
	DemographicInformationMismatch    StatusDetail = "demographic_information_mismatch"
	SampleQuantityNotSufficient       StatusDetail = "sample_quantity_not_sufficient"
	SampleContaminated                StatusDetail = "sample_contaminated"
	SampleStabilityExceeded           StatusDetail = "sample_stability_exceeded"
	SampleHemolyzed                   StatusDetail = "sample_hemolyzed"
	SampleImproperCollection          StatusDetail = "sample_improper_collection"
	// ReasonUnspecified: the laboratory did not say why it cannot use the sample.
	ReasonUnspecified StatusDetail = "reason_unspecified"
	// OrderRefused: the laboratory refused the order.
	OrderRefused StatusDetail = "order_refused"
)

// Origin is the reason for creating an order.
type Origin string

// Origins of orders.
const (
	// OriginInitial starts a transaction.
	OriginInitial Origin = "initial"
	// OriginRedraw repeats what the lab failed to measure; at most one per
	// transaction.
	OriginRedraw Origin = "redraw"
	// OriginRecreation replaces an earlier order.
	OriginRecreation Origin = "recreation"
)

// TransactionStatus is the state of a transaction: an order with its redraw and replacements.
type TransactionStatus string

// Transaction statuses. A transaction without a final report is cancelled if each of its orders failed or was
// cancelled.
const (
	TransactionActive    TransactionStatus = "active"
	TransactionCompleted TransactionStatus = "completed"
	TransactionCancelled TransactionStatus = "cancelled"
)

// ActivationType distinguishes orders that are submitted at once from those that wait for a date.
type ActivationType string

// Activation types.
const (
	// ActivationCurrent: the order has no activation date, or the date has come.
	ActivationCurrent ActivationType = "current"
	// ActivationScheduled: the activation date is after today.
	ActivationScheduled ActivationType = "scheduled"
)

// Error types of this package, for [healthlab.RuleError] and the HTTP API.
const (
	TransitionNotAllowed = "TRANSITION_NOT_ALLOWED"
	CancelNotAllowed     = "CANCEL_NOT_ALLOWED"
	KitNotFound          = "KIT_NOT_FOUND"
	KitNotRegistrable    = "KIT_NOT_REGISTRABLE"
	AlreadyRecreated     = "ALREADY_RECREATED"
	ICDCodesRequired     = "ICD_CODES_REQUIRED"
	ICDCodeInvalid       = "ICD_CODE_INVALID"
	MarkerNotInsurable   = "MARKER_NOT_INSURABLE"
	InsuranceMissing     = "INSURANCE_MISSING"
	PhysicianRequired    = "PHYSICIAN_REQUIRED"
	ConsentRequired      = "CONSENT_REQUIRED"
	MinorNotAllowed      = "MINOR_NOT_ALLOWED"
	MedicalProxyRequired = "MEDICAL_PROXY_REQUIRED"
	ActivateByInPast     = "ACTIVATE_BY_IN_PAST"
	OrderNotModifiable   = "ORDER_NOT_MODIFIABLE"
	OrderNotScheduled    = "ORDER_NOT_SCHEDULED"
	SandboxOnly          = "SANDBOX_ONLY"
	StatusOfOtherMethod  = "STATUS_OF_OTHER_METHOD"
	StatusNotReachable   = "STATUS_NOT_REACHABLE"
	OrderNotFound        = "ORDER_NOT_FOUND"
	DocumentNotFound     = "DOCUMENT_NOT_FOUND"
	ResultNotFound       = "RESULT_NOT_FOUND"
	TeamNotFound         = "TEAM_NOT_FOUND"
	TransactionNotFound  = "ORDER_TRANSACTION_NOT_FOUND"
	AppointmentNotFound  = "APPOINTMENT_NOT_FOUND"
	// IdempotencyInProgress: a request with the same key is running; retry later.
	IdempotencyInProgress = "IDEMPOTENCY_IN_PROGRESS"
	// IdempotencyKeyReused: the key was sent before with another request.
	IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED"
)
