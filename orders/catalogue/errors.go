package catalogue

import "github.com/healthlab-dev/healthlab/orders/internal/rules"

// Values of [healthlab.RuleError].Type in this package. The HTTP API returns them as the error's type.
const (
	LabTestNotFound        = "LAB_TEST_NOT_FOUND"
	LabTestNotOrderable    = "LAB_TEST_NOT_ORDERABLE"
	MethodNotSupported     = "METHOD_NOT_SUPPORTED"
	NoTestsSelected        = "NO_TESTS_SELECTED"
	ConflictingSelection   = "CONFLICTING_TEST_SELECTION"
	MultipleLabs           = "MULTIPLE_LABS"
	MultipleMethods        = "MULTIPLE_COLLECTION_METHODS"
	AddOnRequiresMethod    = "ADD_ON_REQUIRES_COLLECTION_METHOD"
	AddOnIDsMissing        = "ADD_ON_IDS_MISSING"
	AddOnIDsConflict       = "ADD_ON_IDS_CONFLICT"
	MarkerNotInLab         = "MARKER_NOT_IN_LAB"
	MarkerNotFound         = "MARKER_NOT_FOUND"
	MarkerNotALaCarte      = "MARKER_NOT_A_LA_CARTE"
	FeatureNotEnabled      = rules.FeatureNotEnabled
	LabAccountNotFound     = "LAB_ACCOUNT_NOT_FOUND"
	LabAccountWrongLab     = "LAB_ACCOUNT_WRONG_LAB"
	LabAccountNotActive    = "LAB_ACCOUNT_NOT_ACTIVE"
	NoLabAccount           = "NO_LAB_ACCOUNT"
	LabAccountAmbiguous    = "LAB_ACCOUNT_AMBIGUOUS"
	NoActiveLabAccount     = "NO_ACTIVE_LAB_ACCOUNT"
	BillingTypeNotAllowed  = "BILLING_TYPE_NOT_ALLOWED"
	BillingStateNotAllowed = "BILLING_STATE_NOT_ALLOWED"
	AOEMissing             = "AOE_MISSING"
	AOEInvalid             = "AOE_INVALID"
	LabNotFound            = "LAB_NOT_FOUND"
)
