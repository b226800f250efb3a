package labreport

// Types of the healthlab.RuleError of this package.
const (
	RuleFeatureNotEnabled     = "FEATURE_NOT_ENABLED"
	RuleHumanReviewNotEnabled = "HUMAN_REVIEW_NOT_ENABLED"
	RuleUserNotFound          = "USER_NOT_FOUND"
	RuleJobNotFound           = "JOB_NOT_FOUND"
	RuleJobNotInReview        = "JOB_NOT_IN_REVIEW"
	RulePageNotFound          = "PAGE_NOT_FOUND"
	RulePageNotDrawn          = "PAGE_NOT_DRAWN"
	RuleTooManyFiles          = "TOO_MANY_FILES"
	RuleEmptyFile             = "EMPTY_FILE"
	RuleUploadTooLarge        = "UPLOAD_TOO_LARGE"
	RuleUnsupportedFileType   = "UNSUPPORTED_FILE_TYPE"
	RuleContentTypeMismatch   = "CONTENT_TYPE_MISMATCH"
	RulePDFInMultiFile        = "PDF_IN_MULTI_FILE"
	RuleUndecodableImage      = "UNDECODABLE_IMAGE"
	RuleUnreadablePDF         = "UNREADABLE_PDF"
	RuleTooManyPages          = "TOO_MANY_PAGES"
	RuleSandboxQuotaReached   = "SANDBOX_QUOTA_REACHED"
	RuleTooManyRequests       = "TOO_MANY_REQUESTS"
)
