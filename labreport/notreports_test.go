package labreport_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/labreport"
)

// typed sets lines of text; two spaces and more are a tab.
func typed(text string) []labreport.Page {
	w := newWriter(10)
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		x := 50.0
		for i, part := range strings.Split(strings.TrimSpace(l), "  ") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			if i > 0 {
				x = max(x+40, 50+float64(int((x-50)/90)+1)*90)
			}
			x = w.at(x, part)
		}
		w.down(1)
	}
	return w.pages
}

// notReports are texts with numbers and names that are no laboratory reports.
var notReports = map[string]string{
	"invoice": `Hartley Plumbing Ltd  Invoice 20417
Date: 12/03/2025  Customer: Omar Hartley
Item  Qty  Price  Total
Copper pipe  3.5  7.20-8.90  31.15
Iron bracket  12  1.50  18.00
Zinc screws  100  0.04  4.00
Lead flashing  2  14.00  28.00
Subtotal  81.15
VAT 20%  16.23
Total due  97.38`,
	"letter": `Dear Mrs Weber,
Thank you for your visit on 14 March 2025. We discussed your cholesterol and your blood pressure.
As you know, values between 140 and 199 mg/dL suggest that the diet should be changed.
Please take vitamin D 1000 units daily and come back in 3 months.
Yours sincerely, Dr. Lindqvist`,
	"menu": `Lunch menu
Tomato soup  4.50
Iron skillet chicken  12.90
Calcium rich yoghurt  3.20
Glucose-free cake  5.10
Still water 0.5 L  2.00`,
	"empty":       ``,
	"page number": `Page 1 of 1`,
	"water": `Drinking water analysis, Beispielhausen waterworks
Sampling point: well 3  Sampled: 02.05.2025
Parameter  Result  Unit  Limit
Chloride  45  mg/L  250
Sodium  21  mg/L  200
Nitrite  0.02  mg/L  0.5
Iron  0.05  mg/L  0.2
Calcium  88  mg/L  400
Magnesium  14  mg/L  50
pH  7.4    6.5 - 9.5`,
	"nutrition": `Nutrition Facts
Serving size 40 g
Amount per serving  % Daily value
Cholesterol 0 mg  0%
Sodium 140 mg  6%
Potassium 300 mg  8%
Protein 12 g  24%
Iron 1.8 mg  10%
Calcium 260 mg  20%
Vitamin D 2 mcg  10%`,
	"price list": `Laboratory price list 2025
Code  Test  Price
1001  Glucose  4.20 EUR
1002  Creatinine  4.90 EUR
1003  TSH  18.00 EUR
1004  Ferritin  16.50 EUR
1005  Hemoglobin A1c  22.00 EUR
1006  Vitamin D, 25-Hydroxy  39.00 EUR`,
	"reference values": `Reference values for adults
Analyte  Range  Unit
Glucose  70-99  mg/dL
Sodium  135-146  mmol/L
Potassium  3.5-5.3  mmol/L
TSH  0.4-4.5  mIU/L
Ferritin  30-400  ng/mL`,
	"order form": `Laboratory requisition
Patient: Elena Moreau  DOB: 12/04/1980
Please tick the tests:
[ ] Glucose  [ ] Creatinine  [ ] Sodium
[x] TSH  [ ] Free T4  [ ] Ferritin
[ ] Complete blood count  [x] Lipid panel
Fasting: yes  Specimen: serum`,
	"bank statement": `Account statement  Account 1029384756
Date  Description  Amount  Balance
02/01/2025  Card payment pharmacy  -12.40  1,204.11
05/01/2025  Salary  2,300.00  3,504.11
09/01/2025  Rent  -900.00  2,604.11
12/01/2025  Groceries  -84.20  2,519.91`,
	"train ticket": `Ticket 99 1234 5678
From Beispielhausen to Musterstadt
Departure 08:12  Platform 4  Coach 7  Seat 42
Arrival 10:40  Price 39.90 EUR`,
	"recipe": `Lentil soup for 4
200 g lentils
2 carrots
1.5 L water
1/2 tsp salt (sodium 1.2 g)
Cook for 35 min at 90 degrees.`,
	"weather": `Forecast for Monday
Temperature 12-18 C
Wind 5-10 km/h
Humidity 60-75 %
Pressure 1013 hPa
Rain 2 mm`,
	"football": `Results of Saturday
North 3 - 1 South
East 0 - 0 West
Harbor 2 - 5 Valley
Table: points 42, 39, 38`,
	"medication list": `Medication plan of Stefan Baumgart, born 05/12/1947
Drug  Dose  Morning  Noon  Evening
Lithium carbonate  450 mg  1  0  1
Digoxin  0.1 mg  1  0  0
Iron sulfate  100 mg  0  1  0
Vitamin B12  1000 mcg  1  0  0
Levothyroxine  75 mcg  1  0  0`,
	"vaccination record": `Vaccination record
Hepatitis B  12/03/2001  Lot A1234
Measles  01/05/1990  Lot 778
Rubella  01/05/1990  Lot 778
Tetanus  15/09/2019  Lot T99`,
	"radiology": `Radiology report
Patient: Sophie Fournier  DOB: 02/02/1970
Chest X-ray in two planes. The heart is of normal size. No infiltrates.
A nodule of 4 mm in the right upper lobe. Follow-up in 12 months is recommended.
Impression: normal findings.`,
	"blood pressure diary": `Blood pressure diary
Day  Systolic  Diastolic  Pulse
Monday  128  82  70
Tuesday  131  85  72
Wednesday  126  80  68`,
	"soil": `Soil analysis, field 12
pH  6.8
Phosphate  12  mg/100g
Potassium  18  mg/100g
Magnesium  9  mg/100g`,
	"insurance": `Versicherungsschein Nr. 4711-0815
Versicherter: Stefan Weber, geb. 03.04.1966
Beitrag monatlich 312,40 EUR
Selbstbeteiligung 500 EUR
Beginn 01.01.2025`,
	"curriculum vitae": `Curriculum vitae
Priya Okafor, born 5 May 1988
2012-2016 Biochemist, Northfield Clinical Laboratory
2016-2020 Head of laboratory
Languages: English, German, Spanish (B2)
References on request`,
	"physics": `Homework 4
1. A copper wire of 2.5 m has a resistance of 0.3 ohm.
2. The sodium lamp emits at 589 nm.
3. Calculate the osmolality of 0.9 % NaCl.
Answers: 12, 45, 308`,
	"factura": `Factura 2025-114
Cliente: Lucia Delgado Ruiz
Concepto  Cantidad  Precio  Importe
Glucosa en polvo 1 kg  2  4,50  9,00
Sodio cloruro 500 g  1  3,20  3,20
IVA 21 %  2,56
Total  14,76 EUR`,
	"blood sugar diary": `Blood sugar diary of Omar Hartley
Date  Before breakfast  After lunch  Bedtime
01.02.2026  104 mg/dL  142 mg/dL  118 mg/dL
02.02.2026  99 mg/dL  151 mg/dL  121 mg/dL
03.02.2026  110 mg/dL  139 mg/dL  115 mg/dL`,
	"supplement label": `Supplement facts
Serving size 1 tablet
Amount per serving  % Daily value
Vitamin D3 25 mcg  125%
Vitamin B12 500 mcg  20,833%
Folate 400 mcg  100%
Iron 18 mg  100%
Zinc 11 mg  100%
Magnesium 50 mg  12%`,
	"elements": `Chemistry, table 3: atomic mass and melting point
Element  Symbol  Mass  Unit  Melting point
Sodium  Na  22.99  u  97.8
Potassium  K  39.10  u  63.4
Calcium  Ca  40.08  u  842
Iron  Fe  55.85  u  1538
Zinc  Zn  65.38  u  419.5`,
	"hospital bill": `Northfield Hospital  Statement of charges
Patient: Amara Hartley  Account: 5512
Date  Description  Qty  Charge
02/03/2026  Comprehensive metabolic panel  1  $48.00
02/03/2026  Glucose  1  $12.00
02/03/2026  Hemoglobin A1c  1  $31.50
02/03/2026  TSH  1  $44.00
Total charges  $135.50`,
	"aquarium": `Aquarium log
Test  Reading  Target
Nitrite  0.02 mg/L  < 0.1
Nitrate  12 mg/L  < 25
Phosphate  0.1 mg/L  < 0.5
Ammonia  0 mg/L  0
pH  7.2  6.8 - 7.5
Temperature  25 C  24 - 26`,
	"commodities": `Markets on Friday
Copper  9,812 USD/t  +1.2 %
Zinc  2,710 USD/t  -0.4 %
Iron ore  104 USD/t  +0.1 %
Lithium carbonate  13.2 USD/kg  -2.0 %
Glucose syrup  0.62 EUR/kg  0.0 %`,
	"study abstract": `Abstract. In 412 adults, ferritin below 30 ng/mL was found in 18 % (95 % CI 14-22).
Hemoglobin was 13.2 g/dL (12.1-14.8) in women and 14.9 g/dL (13.9-16.1) in men.
Median CRP was 1.4 mg/L (0.6-3.1). Vitamin D was 24 ng/mL (17-33).
Serum iron and TSH did not differ between the groups (p = 0.41).`,
	"machine data sheet": `Analyser X200, technical data
Throughput  240  tests/h
Sample volume  2 - 35  uL
Reagent volume  50 - 300  uL
Wavelength  340 - 800  nm
Linearity of glucose  5 - 700  mg/dL
Weight  98  kg`,
	"quality control": `Quality control, level 2, lot 7741
Analyte  Mean  SD  Unit  Limits
Glucose  112  2.1  mg/dL  106 - 118
Sodium  139  0.9  mmol/L  136 - 142
Potassium  4.1  0.05  mmol/L  3.9 - 4.3
Creatinine  1.02  0.03  mg/dL  0.93 - 1.11
Approved by: Dr. Lindqvist`,
	"Beipackzettel": `Magnesium Brausetabletten 300 mg
Wirkstoff: Magnesiumcitrat. Sonstige Bestandteile: Natrium 120 mg, Kalium 40 mg.
Erwachsene nehmen 1 bis 2 Tabletten täglich. Nicht bei Niereninsuffizienz (Kreatinin über 2 mg/dl).
Lagerung: nicht über 25 Grad.`,
	"courrier": `Chère Madame Moreau,
Votre hémoglobine était à 12,1 g/dL en mars et la ferritine reste basse.
Merci de refaire un bilan (NFS, ferritine, CRP) dans trois mois.
Dr. Fournier`,
	"appointment": `Appointment confirmation
Your appointment for a fasting blood draw is on 14/05/2025 at 08:30.
Please do not eat for 12 hours. Bring your insurance card.
Tests: Glucose, Lipid panel, TSH.`,
}

// Nothing is made up on papers that are no lab reports.
func TestRead_otherDocumentsAreRefusedWithoutRows(t *testing.T) {
	reader := labreport.NewReader(nil)
	require.GreaterOrEqual(t, len(notReports), 20)
	for name, text := range notReports {
		t.Run(name, func(t *testing.T) {
			d, reason := reader.Read(typed(text))
			require.Equal(t, labreport.InvalidInput, reason, "%d rows", len(d.Results))
			require.Empty(t, d.Results)
		})
	}
}
