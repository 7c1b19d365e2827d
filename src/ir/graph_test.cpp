// SPDX-License-Identifier: Apache-2.0
//
// The exported graph: a round trip through JSON and its printed form, and one test a refusal.
#include "ir/graph.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"

namespace ke::ir {
namespace {

constexpr std::string_view kGood = R"({
  "values": [
    {"name": "x", "dtype": "float32", "shape": [2, 3], "strides": [3, 1]},
    {"name": "c", "dtype": "int64", "shape": [2], "strides": [1], "constant": [1, -2]},
    {"name": "y", "dtype": "float32", "shape": [2, 3], "strides": [3, 1]}],
  "inputs": [{"value": 0, "kind": "argument"}],
  "nodes": [{"op": "aten.foo.default",
             "args": [{"value": 0}, 2, 0.5, true, null, {"float": "-inf"}, [1, {"value": 1}]],
             "kwargs": [["dtype", {"dtype": "float32"}], ["mode", {"str": "none"}]],
             "results": [2]}],
  "outputs": [2]})";

Json good() { return *parse_json(kGood); }

std::string refusal(const Json& json) {
  const Result<Graph> graph = graph_from_json(json);
  return graph.has_value() ? "it was read" : graph.error().message;
}

TEST(Graph, ReadsEveryKindOfArgument) {
  const Result<Graph> graph = graph_from_json(good());
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  EXPECT_EQ(print(*graph),
            "%x: float32[2, 3] = argument\n"
            "%c: int64[2] = constant [1, -2]\n"
            "%y: float32[2, 3] = aten.foo.default(%x, 2, 0.5, True, None, -inf, [1, %c], "
            "dtype='float32', mode='none')\n"
            "return %y\n");
}

TEST(Graph, WhatIsWrittenIsReadAgain) {
  const Graph graph = graph_from_json(good()).value();
  const Json written = encode(graph);
  const Graph again = graph_from_json(written).value();
  EXPECT_EQ(print(again), print(graph));
  EXPECT_EQ(encode(again), written);
}

TEST(Graph, RefusesAValueUsedBeforeItIsDefined) {
  Json json = good();
  json["nodes"][0]["args"][0]["value"] = 2;
  EXPECT_EQ(refusal(json), "value 'y' is used before it is defined");
}

TEST(Graph, RefusesAValueDefinedTwice) {
  Json json = good();
  json["nodes"][0]["results"] = {0};
  EXPECT_EQ(refusal(json), "value 'x' is defined twice");
}

TEST(Graph, RefusesAnIdOutOfRange) {
  Json json = good();
  json["outputs"] = {3};
  EXPECT_EQ(refusal(json), "value id 3 is out of range");
  json["outputs"] = {uint64_t{1} << 63};
  EXPECT_EQ(refusal(json), "a value id is not an integer");
}

TEST(Graph, RefusesAnUndefinedOutput) {
  Json json = good();
  json["nodes"] = Json::array();
  EXPECT_EQ(refusal(json), "value 'y' is used before it is defined");
}

TEST(Graph, ReadsTheWorkOfANodeWhereItIsGiven) {
  Json json = good();
  EXPECT_EQ(graph_from_json(json)->nodes[0].flops, 0);
  json["nodes"][0]["flops"] = 12;
  EXPECT_EQ(graph_from_json(json)->nodes[0].flops, 12);
  json["nodes"][0]["flops"] = -1;
  EXPECT_EQ(refusal(json), "a node of the graph has negative work");
}

TEST(Graph, NamesOperationsAndFindsOperandsInLists) {
  const Result<Graph> graph = graph_from_json(good());
  ASSERT_TRUE(graph);
  EXPECT_EQ(operation_of(graph->nodes[0]), "foo");
  EXPECT_EQ(operands_of(graph->nodes[0]), (std::vector<ValueId>{{0}, {1}}));
}

TEST(Graph, RefusesATensorTooLargeToExist) {
  Json json = good();
  json["values"][0]["shape"] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(refusal(json), "value 'x' is too large");
  json["values"][0]["shape"] = {2, 3};
  json["values"][0]["strides"] = {INT64_MAX, 1};
  EXPECT_EQ(refusal(json), "value 'x' is too large");
}

TEST(Graph, RefusesANegativeExtent) {
  Json json = good();
  json["values"][0]["shape"] = {-1, 3};
  EXPECT_EQ(refusal(json), "a shape holds a negative number");
}

TEST(Graph, RefusesStridesOfAnotherRank) {
  Json json = good();
  json["values"][0]["strides"] = {1};
  EXPECT_EQ(refusal(json), "value 'x' has a stride too few or too many");
}

TEST(Graph, RefusesAnUnknownDtypeAsUnavailable) {
  Json json = good();
  json["values"][0]["dtype"] = "complex64";
  const Result<Graph> graph = graph_from_json(json);
  ASSERT_FALSE(graph.has_value());
  EXPECT_EQ(graph.error().code, Errc::unavailable);
  EXPECT_EQ(graph.error().message, "value 'x' has the dtype complex64, which is not handled");
}

TEST(Graph, RefusesAConstantOfAnotherSize) {
  Json json = good();
  json["values"][1]["constant"] = {1, 2, 3};
  EXPECT_EQ(refusal(json), "constant 'c' does not have 2 elements");
}

TEST(Graph, RefusesDeepNesting) {
  Json json = good();
  Json nested = Json::array();
  for (int i = 0; i < 100; ++i) nested = Json::array({nested});
  json["nodes"][0]["args"][0] = nested;
  EXPECT_EQ(refusal(json), "an argument is nested too deeply");
}

TEST(Graph, RefusesAMalformedArgument) {
  Json json = good();
  json["nodes"][0]["args"][0] = {{"value", 0}, {"str", "both"}};
  EXPECT_EQ(refusal(json), "an argument of the graph is malformed");
  json["nodes"][0]["args"][0] = {{"float", "1e999"}};
  EXPECT_EQ(refusal(json), "a float of the graph is none of inf, -inf, nan");
}

TEST(Graph, RefusesAnUnknownInputKind) {
  Json json = good();
  json["inputs"][0]["kind"] = "secret";
  EXPECT_EQ(refusal(json), "an input of the graph has an unknown kind");
}

TEST(Graph, RefusesFieldsItDoesNotKnow) {
  Json json = good();
  json["values"][0]["expected"] = 1;
  EXPECT_EQ(refusal(json).find("expected") == std::string::npos, false) << refusal(json);
}

}  // namespace
}  // namespace ke::ir
