package healthdata

func bodyFloat(name, unit string, get func(*Body) *float64) Column {
	return of(name, TypeFloat64, unit, "", func(b *Body, _ *Row) Cell { return floatPtr(get(b)) })
}

var bodyColumns = append(append([]Column{
	of("measured_at", TypeTimestamp, "local", "instant of the measurement; also the index", func(_ *Body, r *Row) Cell {
		return intCell(localIndex(r))
	}),
	bodyFloat("weight_kilogram", "kg", func(b *Body) *float64 { return b.Weight }),
	bodyFloat("fat_mass_percentage", "%", func(b *Body) *float64 { return b.Fat }),
	bodyFloat("water_percentage", "%", func(b *Body) *float64 { return b.WaterPercentage }),
	bodyFloat("muscle_mass_percentage", "%", func(b *Body) *float64 { return b.MuscleMassPercentage }),
	bodyFloat("visceral_fat_index", "index", func(b *Body) *float64 { return b.VisceralFatIndex }),
	bodyFloat("bone_mass_percentage", "%", func(b *Body) *float64 { return b.BoneMassPercentage }),
	bodyFloat("body_mass_index", "kg/m²", func(b *Body) *float64 { return b.BodyMassIndex }),
	bodyFloat("lean_body_mass_kilogram", "kg", func(b *Body) *float64 { return b.LeanBodyMassKilogram }),
	bodyFloat("waist_circumference_centimeter", "cm", func(b *Body) *float64 { return b.WaistCircumferenceCentimeter }),
}, sourceColumns()...),
	of("time_zone", TypeString, "", "UTC±HH:MM", func(_ *Body, r *Row) Cell { return zoneCell(nil, r.Record.Offset) }),
)
