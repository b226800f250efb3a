package orders

import "github.com/healthlab-dev/healthlab"

// Names of the rules of this package, as a [healthlab.RuleError] and the wire carry
// them.
const (
	TransitionNotAllowed   = "TRANSITION_NOT_ALLOWED"
	CancelNotAllowed       = "CANCEL_NOT_ALLOWED"
	LabTestNotFound        = "LAB_TEST_NOT_FOUND"
	LabTestNotOrderable    = "LAB_TEST_NOT_ORDERABLE"
	MethodNotSupported     = "METHOD_NOT_SUPPORTED"
	KitNotFound            = "KIT_NOT_FOUND"
	KitNotRegistrable      = "KIT_NOT_REGISTRABLE"
	UserNotFound           = "USER_NOT_FOUND"
	NoTestsSelected        = "NO_TESTS_SELECTED"
	ConflictingSelection   = "CONFLICTING_TEST_SELECTION"
	MultipleLabs           = "MULTIPLE_LABS"
	MultipleMethods        = "MULTIPLE_COLLECTION_METHODS"
	AddOnRequiresMethod    = "ADD_ON_REQUIRES_COLLECTION_METHOD"
	AddOnIDsMissing        = "ADD_ON_IDS_MISSING"
	AddOnIDsConflict       = "ADD_ON_IDS_CONFLICT"
	MarkerNotInLab         = "MARKER_NOT_IN_LAB"
	AlreadyRecreated       = "ALREADY_RECREATED"
	MarkerNotFound         = "MARKER_NOT_FOUND"
	MarkerNotALaCarte      = "MARKER_NOT_A_LA_CARTE"
	FeatureNotEnabled      = "FEATURE_NOT_ENABLED"
	LabAccountNotFound     = "LAB_ACCOUNT_NOT_FOUND"
	LabAccountWrongLab     = "LAB_ACCOUNT_WRONG_LAB"
	LabAccountNotActive    = "LAB_ACCOUNT_NOT_ACTIVE"
	NoLabAccount           = "NO_LAB_ACCOUNT"
	LabAccountAmbiguous    = "LAB_ACCOUNT_AMBIGUOUS"
	NoActiveLabAccount     = "NO_ACTIVE_LAB_ACCOUNT"
	BillingTypeNotAllowed  = "BILLING_TYPE_NOT_ALLOWED"
	BillingStateNotAllowed = "BILLING_STATE_NOT_ALLOWED"
	ICDCodesRequired       = "ICD_CODES_REQUIRED"
	ICDCodeInvalid         = "ICD_CODE_INVALID"
	MarkerNotInsurable     = "MARKER_NOT_INSURABLE"
	InsuranceMissing       = "INSURANCE_MISSING"
	PhysicianRequired      = "PHYSICIAN_REQUIRED"
	ConsentRequired        = "CONSENT_REQUIRED"
	AOEMissing             = "AOE_MISSING"
	AOEInvalid             = "AOE_INVALID"
	MinorNotAllowed        = "MINOR_NOT_ALLOWED"
	MedicalProxyRequired   = "MEDICAL_PROXY_REQUIRED"
	ActivateByInPast       = "ACTIVATE_BY_IN_PAST"
	OrderNotModifiable     = "ORDER_NOT_MODIFIABLE"
	OrderNotScheduled      = "ORDER_NOT_SCHEDULED"
	SandboxOnly            = "SANDBOX_ONLY"
	StatusOfOtherMethod    = "STATUS_OF_OTHER_METHOD"
	StatusNotReachable     = "STATUS_NOT_REACHABLE"
	OrderNotFound          = "ORDER_NOT_FOUND"
	ResultNotFound         = "RESULT_NOT_FOUND"
	TransactionNotFound    = "ORDER_TRANSACTION_NOT_FOUND"
)

// broken returns the error of a rule that things as they stand forbid.
func broken(rule, msg string) error { return &healthlab.RuleError{Type: rule, Msg: msg} }

// missing returns the error of something that the team does not have.
func missing(rule, msg string) error {
	return &healthlab.RuleError{Kind: healthlab.NotFound, Type: rule, Msg: msg}
}
