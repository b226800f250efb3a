package orders_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

const panelCSV = `id,name,lab_id,provider_id,type,a_la_carte_enabled,common_tat_days,result_id,result_name,loinc_code,loinc_unit,result_required
21,Lipid panel,1,NL20,panel,true,2,210,Cholesterol,2093-3,mg/dL,
21,,,,,,,211,Triglyceride,2571-8,mg/dL,false
22,"Ferritin, serum",1,NL21,,,,,,,,
`

// A lab's markers come as a table, the rest of the catalogue as JSON.
func ExampleReadMarkersCSV() {
	contents, err := catalogue.ReadContents(strings.NewReader(`{"labs": [{"id": 1, "slug": "northlab", "name": "Northlab"}]}`))
	check(err)
	contents.Markers, err = catalogue.ReadMarkersCSV(strings.NewReader(
		"id,name,lab_id,provider_id,result_id,loinc_code,loinc_unit\n" +
			"11,Ferritin,1,NL11,110,2276-4,ug/L\n"))
	check(err)
	_, err = catalogue.NewStaticCatalog(contents)
	check(err)
	m := contents.Markers[0]
	fmt.Println(m.Name, m.Slug, *m.ProviderID, m.ExpectedResults[0].LOINC.Code)
	// Output: Ferritin ferritin NL11 2276-4
}

func TestReadMarkersCSV_readsPanelsAndExpectedResults(t *testing.T) {
	markers, err := catalogue.ReadMarkersCSV(strings.NewReader("\ufeff" + panelCSV))
	require.NoError(t, err)
	require.Len(t, markers, 2)
	panel := markers[0]
	require.Equal(t, catalogue.Panel, *panel.Type)
	require.True(t, panel.ALaCarteEnabled)
	require.Equal(t, 2, *panel.CommonTATDays)
	require.Nil(t, panel.WorstCaseTATDays)
	require.Len(t, panel.ExpectedResults, 2)
	require.Equal(t, "cholesterol", panel.ExpectedResults[0].Slug)
	require.True(t, panel.ExpectedResults[0].Required)
	require.False(t, panel.ExpectedResults[1].Required)
	require.Equal(t, "mg/dL", *panel.ExpectedResults[1].LOINC.Unit)
	require.Equal(t, 1, *panel.ExpectedResults[1].LabID)
	single := markers[1]
	require.Equal(t, "ferritin-serum", single.Slug)
	require.Equal(t, catalogue.Biomarker, *single.Type)
	require.True(t, *single.IsOrderable)
	require.False(t, single.ALaCarteEnabled)
	require.Empty(t, single.ExpectedResults)
	_, err = catalogue.NewStaticCatalog(catalogue.StaticCatalogContents{Labs: []catalogue.Lab{{ID: 1, Slug: "north"}}, Markers: markers})
	require.NoError(t, err)
}

func TestReadMarkersCSV_reportsEveryErrorByLineAndColumn(t *testing.T) {
	for name, row := range map[string]struct {
		text string
		want []string
	}{
		"columns": {"id,name,colour,id\n", []string{"line.1.column.3 unknown_column", "line.1.column.4 duplicate"}},
		"cells": {"id,name,lab_id,type,a_la_carte_enabled,result_id,loinc_name\nx,,,tests,yes,,\n1,A,1,,,,Iron\n",
			[]string{"line.2.id cell", "line.2.type cell", "line.2.a_la_carte_enabled cell", "line.2.id missing", "line.2.name missing", "line.2.lab_id missing",
				"line.3.result_id missing", "line.3.loinc_code missing"}},
		"fewer cells": {"id,name,lab_id\n1,A,1\n2,B\n", []string{"line.3 csv"}},
		"a quote":     {"id,name,lab_id\n1,\"A,1\n", []string{"line.2 csv"}},
	} {
		_, err := catalogue.ReadMarkersCSV(strings.NewReader(row.text))
		var invalid *healthlab.InvalidError
		require.ErrorAs(t, err, &invalid, name)
		var got []string
		for _, p := range invalid.Problems {
			got = append(got, strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Path), " ", "."), "[]")+" "+p.Code)
		}
		require.Equal(t, row.want, got, name)
	}
	_, err := catalogue.ReadMarkersCSV(strings.NewReader(""))
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = catalogue.ReadContents(strings.NewReader(`{"lab": []}`))
	require.ErrorIs(t, err, healthlab.Invalid)
}

// A range of the catalogue is one that can be read, in a unit that is named, and comes from a table too.
func TestStaticCatalog_acceptsReadableReferenceRangesOnly(t *testing.T) {
	for text, right := range map[string]bool{
		"70-99": true, "<= 5": true, "3,5 - 5,1": true, "70-99 mg/dL": true, "Male: 13-17; Female: 12-15": true,
		"Female: 54-90; Pregnant: 72-108": true, "< 18 years: 3-5, >= 18 years: 4-6": true, "Follicular phase: 3-5; Luteal phase: 4-6": true,
		"Fasting: 70-99": true, "see note": false, "99-70": false, "5": false, "Male: high; Female: 12-15": false,
	} {
		for _, unit := range []string{"mg/dL", ""} {
			table := fmt.Sprintf("id,name,lab_id,result_id,loinc_code,loinc_unit,result_reference_range\n11,Glucose,1,110,2345-7,%s,%q\n", unit, text)
			markers, err := catalogue.ReadMarkersCSV(strings.NewReader(table))
			require.NoError(t, err, text)
			require.Equal(t, text, *markers[0].ExpectedResults[0].ReferenceRange)
			made, err := catalogue.NewStaticCatalog(catalogue.StaticCatalogContents{Labs: []catalogue.Lab{{ID: 1, Slug: "north"}}, Markers: markers})
			if right && unit != "" {
				require.NoError(t, err, text)
				got, err := made.ExpectedResults(t.Context(), []int{11})
				require.NoError(t, err)
				require.Equal(t, text, *got[11][0].ReferenceRange)
				continue
			}
			var invalid *healthlab.InvalidError
			require.ErrorAs(t, err, &invalid, text)
			for _, p := range invalid.Problems {
				require.Equal(t, "[markers 0 expected_results 0 reference_range] reference_range", fmt.Sprint(p.Path)+" "+p.Code)
			}
		}
	}
}

// The examples of the document make a catalogue.
func TestStaticCatalog_documentedExamplesAreValid(t *testing.T) {
	text, err := os.ReadFile("../docs/lab-catalogue.md")
	require.NoError(t, err)
	block := func(kind string) string {
		_, rest, ok := strings.Cut(string(text), "```"+kind+"\n")
		require.True(t, ok, kind)
		body, _, _ := strings.Cut(rest, "```")
		return body
	}
	contents, err := catalogue.ReadContents(strings.NewReader(block("json")))
	require.NoError(t, err)
	_, err = catalogue.NewStaticCatalog(contents)
	require.NoError(t, err)
	fromTable, err := catalogue.ReadMarkersCSV(strings.NewReader(block("csv")))
	require.NoError(t, err)
	require.Equal(t, contents.Markers[0].ExpectedResults[0].LOINC, fromTable[0].ExpectedResults[0].LOINC)
	require.Len(t, fromTable[1].ExpectedResults, 2)
	contents.Markers = fromTable
	_, err = catalogue.NewStaticCatalog(contents)
	require.NoError(t, err)
}

// FuzzReadMarkersCSV: the order of the columns does not matter.
func FuzzReadMarkersCSV(f *testing.F) {
	f.Add(panelCSV)
	f.Add("lab_id,id,name\n1,2,\"a\nb\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := catalogue.ReadMarkersCSV(strings.NewReader(text))
		if err != nil {
			require.Nil(t, got)
			return
		}
		lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		require.NoError(t, err)
		var turned strings.Builder
		w := csv.NewWriter(&turned)
		for i, line := range lines {
			if i == 0 {
				line[0] = strings.TrimPrefix(line[0], "\ufeff")
			}
			slices.Reverse(line)
			require.NoError(t, w.Write(line))
		}
		w.Flush()
		again, err := catalogue.ReadMarkersCSV(strings.NewReader(turned.String()))
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}
