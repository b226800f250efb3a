package ucum

// Masses in mg of 1 mmol. Samples of devices that are given as a mass are divided by them to get mmol.
//
//   - Glucose: the factor of software for continuous glucose monitors, so that values equal those that a person's
//     device shows. Constants.MMOLL_TO_MGDL of xDrip+ is a tenth of it.
//   - Cholesterol and triglycerides: the factors of clinical guidelines, 0.02586 and 0.01129 mmol/L for 1 mg/dL.
//
// Results of laboratories are converted with the molar masses in data/ucum_lab_units.csv (180.156 g/mol for
// glucose). The two kinds of factors differ by at most 0.04 %, below the resolution of a meter.
const (
	GlucoseMass      = 180.182
	CholesterolMass  = 386.7
	TriglycerideMass = 885.7
)
