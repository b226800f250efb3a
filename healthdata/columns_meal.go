package healthdata

func mealOf(name string, get func(*Meal) *float64) Column {
	return of(name, TypeFloat64, "g", "", func(m *Meal, _ *Row) Cell { return floatPtr(get(m)) })
}

func mealMacro(name string, get func(*Macros) *float64) Column {
	return mealOf(name, func(m *Meal) *float64 {
		if m.Macros == nil {
			return nil
		}
		return get(m.Macros)
	})
}

func mealFat(name string, get func(*Fats) *float64) Column {
	return mealMacro(name, func(m *Macros) *float64 {
		if m.Fats == nil {
			return nil
		}
		return get(m.Fats)
	})
}

// mealMicro is a nutrient by the name that [Micros] has for it. The name of the column
// says the unit; the nutrient's own is converted to it.
func mealMicro(name, unit string, group func(*Micros) map[string]float64, nutrient string) Column {
	scale := 1.0
	if unit == "mg" && MicroUnit(nutrient) == "µg" {
		scale = 1000
	}
	return of(name, TypeFloat64, unit, "", func(m *Meal, _ *Row) Cell {
		if m.Micros == nil {
			return Cell{}
		}
		v, ok := group(m.Micros)[nutrient]
		if !ok {
			return Cell{}
		}
		return floatCell(v / scale)
	})
}

func minerals(m *Micros) map[string]float64      { return m.Minerals }
func traceElements(m *Micros) map[string]float64 { return m.TraceElements }
func vitamins(m *Micros) map[string]float64      { return m.Vitamins }

var mealColumns = append([]Column{
	of("calories", TypeFloat64, "kcal", "", func(m *Meal, _ *Row) Cell {
		if m.Energy == nil {
			return Cell{}
		}
		return floatCell(m.Energy.Value)
	}),
	mealMacro("carbohydrate_gram", func(m *Macros) *float64 { return m.Carbs }),
	mealMacro("protein_gram", func(m *Macros) *float64 { return m.Protein }),
	mealMacro("alcohol_gram", func(m *Macros) *float64 { return m.Alcohol }),
	mealMacro("water_gram", func(m *Macros) *float64 { return m.Water }),
	mealMacro("fibre_gram", func(m *Macros) *float64 { return m.Fibre }),
	mealMacro("sugar_gram", func(m *Macros) *float64 { return m.Sugar }),
	mealMacro("cholesterol_gram", func(m *Macros) *float64 { return m.Cholesterol }),
	mealFat("saturated_fat_gram", func(f *Fats) *float64 { return f.Saturated }),
	mealFat("monounsaturated_fat_gram", func(f *Fats) *float64 { return f.Monounsaturated }),
	mealFat("polyunsaturated_fat_gram", func(f *Fats) *float64 { return f.Polyunsaturated }),
	mealFat("omega3_fat_gram", func(f *Fats) *float64 { return f.Omega3 }),
	mealFat("omega6_fat_gram", func(f *Fats) *float64 { return f.Omega6 }),
	mealFat("total_fat_gram", func(f *Fats) *float64 { return f.Total }),
	mealMicro("sodium_milligram", "mg", minerals, "sodium"),
	mealMicro("potassium_milligram", "mg", minerals, "potassium"),
	mealMicro("calcium_milligram", "mg", minerals, "calcium"),
	mealMicro("phosphorus_milligram", "mg", minerals, "phosphorus"),
	mealMicro("magnesium_milligram", "mg", minerals, "magnesium"),
	mealMicro("iron_milligram", "mg", minerals, "iron"),
	mealMicro("zinc_milligram", "mg", minerals, "zinc"),
	mealMicro("fluoride_milligram", "mg", minerals, "fluoride"),
	mealMicro("chloride_milligram", "mg", minerals, "chloride"),
	mealMicro("vitamin_a_milligram", "mg", vitamins, "vitamin_a"),
	mealMicro("vitamin_b1_milligram", "mg", vitamins, "vitamin_b1"),
	mealMicro("riboflavin_milligram", "mg", vitamins, "riboflavin"),
	mealMicro("niacin_milligram", "mg", vitamins, "niacin"),
	mealMicro("pantothenic_acid_milligram", "mg", vitamins, "pantothenic_acid"),
	mealMicro("vitamin_b6_milligram", "mg", vitamins, "vitamin_b6"),
	mealMicro("biotin_microgram", "µg", vitamins, "biotin"),
	mealMicro("vitamin_b12_microgram", "µg", vitamins, "vitamin_b12"),
	mealMicro("vitamin_c_milligram", "mg", vitamins, "vitamin_c"),
	mealMicro("vitamin_d_microgram", "µg", vitamins, "vitamin_d"),
	mealMicro("vitamin_e_milligram", "mg", vitamins, "vitamin_e"),
	mealMicro("vitamin_k_microgram", "µg", vitamins, "vitamin_k"),
	mealMicro("folic_acid_microgram", "µg", vitamins, "folic_acid"),
	mealMicro("chromium_microgram", "µg", traceElements, "chromium"),
	mealMicro("copper_milligram", "mg", traceElements, "copper"),
	mealMicro("iodine_microgram", "µg", traceElements, "iodine"),
	mealMicro("manganese_milligram", "mg", traceElements, "manganese"),
	mealMicro("molybdenum_microgram", "µg", traceElements, "molybdenum"),
	mealMicro("selenium_microgram", "µg", traceElements, "selenium"),
	of("date", TypeDate, "", "the day as the person recorded it", func(m *Meal, _ *Row) Cell { return dateCell(m.CalendarDate) }),
	of("name", TypeString, "", "name of the meal", func(m *Meal, _ *Row) Cell { return textCell(m.Name) }),
}, sourceColumns()...)
