package ucum

// Masses in mg of 1 mmol, by which samples of devices in a mass become an amount.
//
//   - Glucose: the factor of software for continuous glucose monitors (xDrip+, Constants.MMOLL_TO_MGDL is a tenth
//     part), so that values are those that a person's device shows.
//   - Cholesterol and triglycerides: the factors of clinical guidelines, 0.02586 and 0.01129 mmol/L for 1 mg/dL.
//
// Results of laboratories are converted by the rows molar of data/ucum_lab_units.csv, which are those of
// laboratories (180.156 g/mol for glucose). The two differ by at most 0.04 %, below the resolution of a meter.
const (
	GlucoseMass      = 180.182
	CholesterolMass  = 386.7
	TriglycerideMass = 885.7
)
