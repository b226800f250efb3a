package healthdata

import "github.com/healthlab-dev/healthlab"

func cycleOf(name string, t ColumnType, doc string, get func(*MenstrualCycle) Cell) Column {
	return of(name, t, "", doc, func(c *MenstrualCycle, _ *Row) Cell { return get(c) })
}

// cycleList is a list whose elements have a day and at most one field more.
func cycleList(name, field string, t ColumnType, get func(*MenstrualCycle) Cell) Column {
	c := cycleOf(name, TypeList, "", get)
	c.Fields = []ListField{{Name: "date", Type: TypeDate}}
	if field != "" {
		c.Fields = append(c.Fields, ListField{Name: field, Type: t})
	}
	return c
}

func dayText(d healthlab.Date, s string) []Cell { return []Cell{dateCell(d), textCell(s)} }

func testDays(list []TestDay) Cell {
	return listCell(list, func(d *TestDay) []Cell { return dayText(d.Date, d.TestResult) })
}

var cycleColumns = append([]Column{
	cycleOf("period_start", TypeDate, "also the index", func(c *MenstrualCycle) Cell { return dateCell(c.PeriodStart) }),
	cycleOf("period_end", TypeDate, "last day of bleeding", func(c *MenstrualCycle) Cell { return datePtr(c.PeriodEnd) }),
	cycleOf("cycle_end", TypeDate, "the day before the next period", func(c *MenstrualCycle) Cell { return datePtr(c.CycleEnd) }),
	cycleOf("is_predicted", TypeBool, "foreseen and not recorded", func(c *MenstrualCycle) Cell { return boolCell(c.IsPredicted) }),
	cycleList("menstrual_flow", "flow", TypeString, func(c *MenstrualCycle) Cell {
		return listCell(c.MenstrualFlow, func(d *FlowDay) []Cell { return dayText(d.Date, d.Flow) })
	}),
	cycleList("cervical_mucus", "quality", TypeString, func(c *MenstrualCycle) Cell {
		return listCell(c.CervicalMucus, func(d *MucusDay) []Cell { return dayText(d.Date, d.Quality) })
	}),
	cycleList("intermenstrual_bleeding", "", "", func(c *MenstrualCycle) Cell {
		return listCell(c.IntermenstrualBleed, func(d *Day) []Cell { return []Cell{dateCell(d.Date)} })
	}),
	cycleList("contraceptive", "type", TypeString, func(c *MenstrualCycle) Cell {
		return listCell(c.Contraceptive, func(d *ContraceptiveIn) []Cell { return dayText(d.Date, d.Type) })
	}),
	cycleList("detected_deviations", "deviation", TypeString, func(c *MenstrualCycle) Cell {
		return listCell(c.DetectedDeviations, func(d *DeviationDay) []Cell { return dayText(d.Date, d.Deviation) })
	}),
	cycleList("ovulation_test", "test_result", TypeString, func(c *MenstrualCycle) Cell { return testDays(c.OvulationTest) }),
	cycleList("home_pregnancy_test", "test_result", TypeString, func(c *MenstrualCycle) Cell { return testDays(c.HomePregnancyTest) }),
	cycleList("home_progesterone_test", "test_result", TypeString, func(c *MenstrualCycle) Cell { return testDays(c.HomeProgesteroneTest) }),
	cycleList("sexual_activity", "protection_used", TypeBool, func(c *MenstrualCycle) Cell {
		return listCell(c.SexualActivity, func(d *SexualActivity) []Cell { return []Cell{dateCell(d.Date), boolPtr(d.ProtectionUsed)} })
	}),
	cycleList("basal_body_temperature", "value", TypeFloat64, func(c *MenstrualCycle) Cell {
		return listCell(c.BasalBodyTemperatures, func(d *TemperatureDay) []Cell { return []Cell{dateCell(d.Date), floatCell(d.Value)} })
	}),
}, sourceColumns()...)
