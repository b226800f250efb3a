package healthdata

var profileColumns = append(append([]Column{
	of("height_centimeter", TypeInt64, "cm", "", func(f *Profile, _ *Row) Cell { return intPtr(f.Height) }),
	of("birth_date", TypeDate, "", "", func(f *Profile, _ *Row) Cell { return datePtr(f.BirthDate) }),
	of("wheelchair_use", TypeBool, "", "", func(f *Profile, _ *Row) Cell { return boolPtr(f.WheelchairUse) }),
	of("gender", TypeString, "", "", func(f *Profile, _ *Row) Cell { return textPtr(f.Gender) }),
	of("sex", TypeString, "", "", func(f *Profile, _ *Row) Cell { return textPtr(f.Sex) }),
}, sourceColumns()...),
	of("created_at", TypeInstant, "UTC", "", func(_ *Profile, r *Row) Cell { return intCell(r.Record.CreatedAt.UnixMicro()) }),
	of("updated_at", TypeInstant, "UTC", "also the index", func(_ *Profile, r *Row) Cell { return intCell(r.Record.UpdatedAt.UnixMicro()) }),
)
