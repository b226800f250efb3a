package appointment

// Values of [healthlab.RuleError].Type for places and times. The HTTP API returns them as the error's type.
const (
	AppointmentsNotOffered = "APPOINTMENTS_NOT_AVAILABLE"
	AreaNotServed          = "AREA_NOT_SERVED"
	BookingKeyInvalid      = "BOOKING_KEY_INVALID"
	NoSlots                = "NO_SLOTS"
	PSCNotAvailable        = "PSC_NOT_AVAILABLE"
	PlaceMissing           = "PLACE_MISSING"
	SchedulingNotEnabled   = "PSC_SCHEDULING_NOT_ENABLED"
	SchedulingNotSupported = "LAB_SCHEDULING_NOT_SUPPORTED"
	SiteUnknown            = "SITE_UNKNOWN"
	SlotNotAvailable       = "SLOT_NOT_AVAILABLE"
	StartDateInPast        = "START_DATE_IN_PAST"
	StreetNumberMissing    = "STREET_NUMBER_MISSING"
	TooManySites           = "TOO_MANY_SITES"
	ZipCodeUnknown         = "ZIP_CODE_UNKNOWN"
)
