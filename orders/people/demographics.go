package people

// Gender is the gender on a requisition.
type Gender string

// Genders.
const (
	Female        Gender = "female"
	Male          Gender = "male"
	OtherGender   Gender = "other"
	UnknownGender Gender = "unknown"
)

// Race is a race on a requisition.
type Race string

// Ethnicity is an ethnicity on a requisition.
type Ethnicity string

// SexualOrientation is a sexual orientation on a requisition.
type SexualOrientation string

// GenderIdentity is a gender identity on a requisition.
type GenderIdentity string

// Allowed values of race, ethnicity, sexual orientation and gender identity.
var (
	races = []Race{"african_american_or_black", "asian", "indigenous_native_american_alaska_native",
		"other", "pacific_islander_or_hawaiian", "white_caucasian"}
	ethnicities        = []Ethnicity{"hispanic", "non_hispanic", "ashkenazi_jewish", "other"}
	sexualOrientations = []SexualOrientation{"lesbian_gay_or_homosexual", "heterosexual_or_straight",
		"bisexual", "dont_know", "other"}
	genderIdentities = []GenderIdentity{"male", "female", "female_to_male_ftm_transgender_male_trans_man",
		"male_to_female_mtf_transgender_female_trans_woman", "genderqueer", "other"}
	genders = []Gender{Female, Male, OtherGender, UnknownGender}
)
