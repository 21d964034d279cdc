"""Pages about models: their text, their charts, and that data cannot add markup to them."""

import base64
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from fitted_models import DOMAINS, FRAME, MODELS, X, Y
from flat_gem import gem_classifier
from sklearn.base import is_regressor
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    confusion_matrix,
    log_loss,
    precision_recall_fscore_support,
    r2_score,
    root_mean_squared_error,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import eigenfeat as ef
from eigenfeat import EpochClassifier, TableClassifier, report
from eigenfeat.early import ReliableClassifier
from eigenfeat.report.columns import column_effect
from eigenfeat.signals import ConvolutionClassifier

VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Reads a page: its text by section, and whether every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.tags, self.links = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []
        self.words = " ".join(" ".join(self.text).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.links += [value for name, value in attrs if name in ("src", "href", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)

    @property
    def sections(self):
        return [attrs["id"] for tag, attrs in self.tags if tag == "section"]


@pytest.fixture(scope="module")
def digits():
    rows, labels = load_digits(n_class=5, return_X_y=True)
    return rows[:150], labels[:150], rows[700:800], labels[700:800]


@pytest.fixture(scope="module")
def digit_page(digits):
    train, y, test, truth = digits
    model = ef.TableClassifier(views=["columns", "gem"]).fit(train, y)
    return model, report.write_report(model, test, truth, title="Digits", image_shape=(8, 8))


def test_the_figures_are_those_of_predictions(digits, digit_page):
    _, _, test, truth = digits
    model, text = digit_page
    page = Page(text)
    chances = model.predict_proba(test)
    labels = model.classes_[chances.argmax(axis=1)]
    share = accuracy_score(truth, labels)
    assert f"Accuracy {share:.1%} ± {np.sqrt(share * (1 - share) / 100):.1%}" in page.words
    assert f"Errors {(labels != truth).sum()} in 100 samples" in page.words
    exact = chances.astype(np.float64)
    loss = log_loss(truth, exact / exact.sum(axis=1, keepdims=True))
    assert f"Log loss {loss:.3f}" in page.words
    counts = confusion_matrix(truth, labels)
    precision, recall, score, rows = precision_recall_fscore_support(truth, labels)
    for k in range(5):
        assert f" {k} {rows[k]} {precision[k]:.3f} {recall[k]:.3f} {score[k]:.3f} " in page.words
    worst = np.unravel_index(np.argmax(counts - np.diag(np.diag(counts))), counts.shape)
    assert f"of the true class {worst[0]} {worst[1]} {counts[worst]} " in page.words
    assert page.sections == [
        *("confusion", "classes", "calibration", "most-confident-errors", "views", "spectrum"),
        *("filters", "model-card", "parameters-and-versions"),
    ]
    frame = pd.DataFrame({"sure": chances.max(axis=1), "right": labels == truth})
    tenths = frame.groupby(np.ceil(10 * frame["sure"])).sum()
    error = (tenths["sure"] - tenths["right"]).abs().sum() / 100
    assert f"Calibration error {error:.3f} mean gap" in page.words
    for name in model.get_params():
        assert name in page.words
    assert f"eigenfeat {ef.__version__}" in page.words


@pytest.mark.usefixtures("undrawn")
def test_weights_count_in_the_calibration(digits):
    train, y, test, truth = digits
    few = slice(26, 30)  # pages about few columns are written soon
    model, test = LinearDiscriminantAnalysis().fit(train[:, few], y), test[:, few]
    weight = np.repeat([0.0, 3.0, 1.0], [10, 40, 50])
    rows = np.repeat(np.arange(100), weight.astype(int))
    weighted = Page(report.write_report(model, test, truth, sample_weight=weight)).words
    repeated = Page(report.write_report(model, test[rows], truth[rows])).words
    pattern = r"The mean probability of .* error is [\d.]+"
    assert re.search(pattern, weighted).group() == re.search(pattern, repeated).group()


@pytest.mark.usefixtures("undrawn")
def test_the_class_of_interest(digits):
    train, y, test, truth = digits
    few = slice(26, 30)
    model, test = LinearDiscriminantAnalysis().fit(train[:, few], y), test[:, few]
    page = Page(report.write_report(model, test, truth, pos_label=3)).words
    area = average_precision_score(truth == 3, model.predict_proba(test)[:, 3])
    assert f"Average precision of 3 {area:.3f} share of the class: " in page
    chance, share = model.predict_proba(test)[:, 3].mean(), (truth == 3).mean()
    assert f"The mean probability of class 3 is {chance:.3f}, and the share of class 3" in page
    assert f"is {share:.3f}: probabilities" in page
    with pytest.raises(ValueError, match=r"pos_label: expected .* \[0, 1, 2, 3, 4\], got 7"):
        report.write_report(model, test, truth, pos_label=7)
    two = LinearDiscriminantAnalysis().fit(train[:, few], y > 2)
    pages = [
        report.write_report(two, test, truth > 2, pos_label=label) for label in (None, True, False)
    ]
    assert pages[0] != pages[2]
    assert "of class True is" in pages[1]
    assert "of class False is" in pages[2]


def errors_of(text, section):
    """The HTML of a section, and its table of samples."""
    html = text[text.index(f'<section id="{section}"') :].partition("</section>")[0]
    head, *lines = re.findall(r"<tr>(.*?)</tr>", html)
    cells = [[unescape(cell) for cell in re.findall(r"<td.*?>(.*?)</td>", line)] for line in lines]
    names = [unescape(name) for name in re.findall(r"<th.*?>(.*?)</th>", head)]
    return html, pd.DataFrame(cells, columns=names)


@pytest.mark.usefixtures("undrawn")
def test_the_errors_have_the_values_of_the_most_important_columns():
    random = np.random.default_rng(0)
    n = 300
    word = random.choice(["<b>elm</b>", "oak & ash"], n).astype(object)
    frame = pd.DataFrame({f"noise{j}": random.standard_normal(n) for j in range(8)})
    frame["<i>size"] = random.integers(1000, 4000, n)
    frame["word"] = word
    frame["since"] = pd.date_range("2020-02-01", periods=n)[random.permutation(n)]
    frame.loc[::7, "word"] = None
    frame.loc[::5, "since"] = pd.NaT
    score = frame["<i>size"] / 1000 + 3.0 * (word == "<b>elm</b>")
    y = np.where(score + random.standard_normal(n) > 4, "yes", "no")
    model = TableClassifier(["columns"]).fit(frame[:150], y[:150])
    text = report.write_report(model, frame[150:], y[150:])
    html, table = errors_of(text, "most-confident-errors")
    columns = table.columns[5:].tolist()
    assert 2 <= len(columns) <= 6
    assert {"<i>size", "word"} <= {*columns}
    for _, line in table.iterrows():
        sample = frame.iloc[150 + int(line["sample"])]
        assert line["<i>size"] == str(sample["<i>size"])
        assert line["word"] == ("missing" if pd.isna(sample["word"]) else sample["word"])
    assert "<b>" not in html
    assert "oak &amp; ash" in html
    assert "The last columns show the values of the most important columns." in html


@pytest.mark.usefixtures("undrawn")
def test_the_largest_errors_of_a_regression_have_values_of_columns():
    random = np.random.default_rng(0)
    rows = random.standard_normal((200, 3))
    y = 10 * rows[:, 1] + random.standard_normal(200)
    model = LinearRegression().fit(rows[:100], y[:100])
    _, table = errors_of(report.write_report(model, rows[100:], y[100:]), "largest-errors")
    assert table.columns[4] == "column 1"
    expected = rows[100 + table["sample"].astype(int), 1]
    np.testing.assert_allclose(table["column 1"].astype(float), expected, rtol=1e-5)


def test_pages_about_series_and_epochs():
    random, y = np.random.default_rng(0), np.tile(["a", "b"], 30)
    epochs = random.standard_normal((60, 3, 40)) + np.where(y == "a", 1, -1)[:, None, None]
    page = report.write_report(EpochClassifier().fit(epochs, y), epochs, y)
    assert "EpochClassifier on 3 channels, 2 classes." in page
    lists = [epoch[:, : 20 + i % 20] for i, epoch in enumerate(epochs)]
    model = ConvolutionClassifier(random_state=0).fit(lists, y)
    page = report.write_report(model, lists, y)
    assert "ConvolutionClassifier on series of several lengths, 2 classes." in page
    objects = np.empty(60, dtype=object)
    objects[:] = lists
    assert report.write_report(model, objects, y) == page
    assert "cross-validated" in report.write_report(model, lists, y, cv=2)


def test_a_page_loads_no_other_file(digit_page):
    page = Page(digit_page[1])
    assert all(link.startswith(("data:image/svg+xml;base64,", "#")) for link in page.links)
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    assert {link[1:] for link in page.links if link.startswith("#")} <= ids
    policy = [attrs for tag, attrs in page.tags if tag == "meta" and "content" in attrs]
    assert any("default-src 'none'" in attrs["content"] for attrs in policy)
    assert "script" not in {tag for tag, _ in page.tags}
    outside = re.sub(r"data:image/svg\+xml;base64,[\w+/=]+", "", digit_page[1])
    assert "http" not in outside.replace("http-equiv", "")
    assert "@import" not in outside
    assert "url(" not in outside
    pictures = [base64.b64decode(link.partition(",")[2]) for link in page.links if link[0] == "d"]
    assert len(pictures) == 5
    for picture in pictures:
        hrefs = re.findall(rb'href="([^"]{1,40})', picture)
        assert all(href.startswith((b"#", b"data:image/png;base64,")) for href in hrefs)


def test_nothing_of_the_data_is_markup():
    nasty = np.array(["<script>alert(1)</script>", "a & \"b\" 'c'", "$x^{ \u4e2d\u6587"])
    y = nasty[np.searchsorted(["birch", "elm", "oak"], Y)]
    frame = pd.DataFrame(X, columns=["<i>a", "b&amp;", "c\"'", "d</td>"])
    for model in (ef.LDG(n_components=2), gem_classifier(n_directions=2)):
        text = report.write_report(
            model.fit(frame, y), frame, y, title="<b>&", sources={"<u>": "</p><script>"}
        )
        page = Page(text)
        tags = {tag for tag, _ in page.tags}
        assert not {"script", "u", "b"} & tags
        assert nasty[0] in page.words
        assert nasty[1] in page.words
        assert "<b>& " in page.words
        assert "</p><script>" in page.words
    names = ("<i>a", "b&amp;", "d</td>")
    assert all(name in page.words for name in names)


FIRST = {"GEM", "TableRegressor", "SpatialFilters", "MultinomialLogit, two", "moments"}


@pytest.mark.parametrize(
    "name",
    [name if name in FIRST else pytest.param(name, marks=pytest.mark.long) for name in MODELS],
)
def test_every_model_has_a_page_or_an_error(name):
    model = MODELS[name]()
    rows, labels = (FRAME if hasattr(model, "feature_names_in_") else X), Y
    if name.startswith(("SpatialFilters", "TangentSpace")):
        rows, labels = X.reshape(15, 4, 6), Y[:15]
        rows = np.tile(rows, 6) if name.endswith("bands") else rows
    elif name == "EpochClassifier":
        rows, labels = np.tile(X.reshape(15, 4, 6), 6), np.arange(15) % 2
    elif name == "MultinomialLogit, two":
        labels = Y == "elm"
    elif name == "GEMClassifier, deep":
        labels = np.arange(90) % 3 - 1
    if not hasattr(model, "get_params"):
        with pytest.raises(ValueError, match=r"^model: expected a fitted estimator"):
            report.write_report(model, rows, labels)
        return
    if is_regressor(model):
        with pytest.raises(ValueError, match=r"^y: expected numbers for a regression"):
            report.write_report(model, rows, labels)
        labels = X[:, 0]
    page = Page(report.write_report(model, rows, labels))
    assert page.sections[-1] == "parameters-and-versions"
    assert len(page.sections) > 1
    assert len(DOMAINS) == len(X)


@pytest.mark.usefixtures("undrawn")
def test_limits_are_those_of_the_model():
    rng = np.random.default_rng(0)
    epochs, y = rng.standard_normal((24, 3, 40)), np.arange(24) % 2
    page = Page(report.write_report(EpochClassifier(100.0).fit(epochs, y), epochs, y))
    assert "does not extrapolate" not in page.words
    flat = epochs[:, :, 0]
    page = Page(report.write_report(TableClassifier(["columns"]).fit(flat, y), flat, y))
    assert "does not extrapolate" in page.words


def test_sections_fit_the_family(digits):
    train, y, test, truth = digits
    rng = np.random.default_rng(3)
    ramps = np.array(["down", "up"])[np.arange(160) % 2]
    series = 0.4 * rng.standard_normal((160, 30)).cumsum(axis=1)
    series += np.outer(np.where(ramps == "up", 1, -1), np.linspace(0, 3, 30))
    lda = ReliableClassifier(LinearDiscriminantAnalysis(), reliability=0.7)
    lda.fit(series[:80], ramps[:80])
    lda.calibrate(series[80:120], ramps[80:120])
    page = Page(report.write_report(lda, series[120:], ramps[120:]))
    found = lda.predict_early(series[120:])
    early = (found.label == ramps[120:]).mean()
    final = (found.label == lda.predict(series[120:])).mean()
    assert f"Early accuracy {early:.1%}" in page.words
    assert f"Samples needed {found.time.mean():.1f} of 30" in page.words
    assert f"Final labels {final:.1%}" in page.words
    assert {"decisions", "reliability", "one-series", "confusion"} <= {*page.sections}
    with pytest.raises(ValueError, match="with holdout or cv, got an early classifier"):
        report.write_report(lda, series[120:], ramps[120:], cv=2)
    words = Page(report.write_report(lda.uncorrected(), series[120:], ramps[120:])).words
    assert "Required reliability (tau): 0.7. Labels that are final:" in words
    assert "The rule is not corrected" in words
    agrees = (found.label == lda.predict(series[120:]))[ramps[120:] == "down"]
    assert f"down {len(agrees)} {agrees.mean():.4f}" in page.words
    reduced = ef.LDG(n_components=[2, 5], gamma=0.4, n_neighbors=8).fit(train, y)
    page = Page(report.write_report(reduced, test, truth, image_shape=(8, 8)))
    assert {"embedding", "filters"} <= {*page.sections}
    shift = ef.MaxMarginShift(PCA(3), scales=[0.0, 0.5]).fit(train, y)
    page = Page(report.write_report(shift, test, truth, image_shape=(8, 8)))
    assert {"embedding", "filters"} <= {*page.sections}


@pytest.mark.usefixtures("undrawn")
def test_a_column_of_categories_is_one_column(rng):
    """All indicators of a column are permuted together, so that its importance is whole."""
    word, x = rng.choice(["red", "green", "blue", "grey"], 400), rng.standard_normal(400)
    y = np.isin(word, ["red", "blue"]) ^ (rng.random(400) < 0.1)
    X = pd.DataFrame({"x": x, "word": word, "id": [f"no. {i}" for i in range(400)]})
    with pytest.warns(UserWarning, match="'id'"):
        model = ef.TableClassifier(["columns"]).fit(X[:200], y[:200])
    words = Page(report.write_report(model, X[200:], y[200:])).words
    found = re.findall(r"(x|word|id) ([+-][\d.]+)", words.partition("rise in log loss")[2])
    costs = {name: float(cost) for name, cost in found}
    assert list(costs) == ["word", *sorted(["x", "id"], key=lambda name: -costs[name])]
    assert costs["word"] > 0.5 > 5 * abs(costs["x"])
    assert costs["id"] == 0
    assert "columns left out id" in words


def test_tables_with_words_and_gaps(rng):
    """A data frame goes to the pipeline as it is, whatever its columns are."""
    n = 200
    y = np.where(rng.random(n) < 0.5, "yes", "no")
    frame = pd.DataFrame(
        {
            "colour": np.where(rng.random(n) < 0.8, np.where(y == "yes", "red", "blue"), "green"),
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.standard_normal(n)),
        }
    )
    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["colour"]), (SimpleImputer(), ["size"])
        ),
        RandomForestClassifier(20, random_state=0),
    ).fit(frame[:100], y[:100])
    page = Page(report.write_report(model, frame[100:].assign(unused=1.0), y[100:]))
    assert page.sections == [
        *("confusion", "classes", "calibration", "most-confident-errors"),
        *("importance-of-columns", "effects-of-columns"),
        *("model-card", "parameters-and-versions"),
    ]
    assert " colour +" in page.words
    assert "unused" not in page.words


@pytest.mark.usefixtures("undrawn")
def test_tables_of_other_libraries_have_the_same_page(rng):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = pd.DataFrame({"x": rng.standard_normal(80), "word": rng.choice(["red", "blue"], 80)})
    y = np.where((frame["x"] > 0) ^ (frame["word"] == "red"), "yes", "no")
    model = TableClassifier(["columns"]).fit(frame, y)
    page = report.write_report(model, frame, y)
    for table in (polars.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert report.write_report(model, table, y) == page
    report.write_report(model, table, y, cv=2)


def test_a_page_about_a_regression(rng):
    rows = rng.standard_normal((300, 4))
    y = 3 * rows[:, 2] + rng.standard_normal(300)
    model = ef.TableRegressor(views=["columns", "splines"]).fit(rows[:200], y[:200])
    page = Page(report.write_report(model, rows[200:], y[200:]))
    assert page.sections == [
        *("predictions", "residuals", "largest-errors", "views", "importance-of-columns"),
        *("effects-of-columns", "model-card", "parameters-and-versions"),
    ]
    found = model.predict(rows[200:])
    assert f"R^2 {r2_score(y[200:], found):.3f} mean of the target: 0.000" in page.words
    error = root_mean_squared_error(y[200:], found)
    assert f"Root mean squared error {error:.6g} in 100 samples; the mean has" in page.words
    assert re.search(r"rise in root mean squared error column 2 \+", page.words)
    worst = np.argmax(np.abs(found - y[200:]))
    line = f" {worst} {y[200:][worst]:.6g} "
    assert line in page.words.partition("prediction too high by column 2 ")[2][:60]


def test_a_regression_with_one_output_in_a_column(rng):
    rows = rng.standard_normal((60, 2))
    model = LinearRegression().fit(rows, rows[:, :1])
    assert "R^2 1.000" in Page(report.write_report(model, rows, rows[:, 0])).words


def test_exact_predictions_are_neither_too_low_nor_too_high():
    rows = np.arange(60.0)[:, None] // 20
    model = DecisionTreeRegressor().fit(rows, rows[:, 0])
    page = Page(report.write_report(model, rows, rows[:, 0]))
    assert "Nine of ten predictions are between 0 too high and 0 too low" in page.words


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("n", "reach"), [(60, "2 standard deviations"), (100, "a standard dev")])
def test_the_limit_of_a_regression_of_few_samples(rng, n, reach):
    rows = rng.standard_normal((n, 2))
    model = ef.TableRegressor("columns").fit(rows, rows[:, 0])
    page = Page(report.write_report(model, rows, rows[:, 0]))
    assert f"Numbers and predictions stay within {reach}" in page.words


def test_clusters_are_features(digits):
    train, _, test, truth = digits
    page = Page(report.write_report(KMeans(4, random_state=0).fit(train), test, truth))
    assert "3 nearest neighbours in the features" in page.words


@pytest.mark.usefixtures("undrawn")
def test_the_page_says_which_samples_its_measures_come_from(rng):
    rows = rng.standard_normal((200, 3))
    y = np.where(rng.random(200) < 0.5, "no", "yes")  # independent of the rows
    model = DecisionTreeClassifier(random_state=0).fit(rows, y)

    def words(**more):
        return Page(report.write_report(model, rows, y, **more)).words

    assert "Whether it was fitted to these samples is not known" in words()
    trained = words(seen_in_fit=True)
    assert "from samples that the model was fitted to, and are too good" in trained
    assert int(re.search(r"Errors (\d+)", trained).group(1)) < 10
    text = words(cv=4)
    assert "Measures are cross-validated: the samples of each of 4 folds" in text
    assert int(re.search(r"Errors (\d+) in 200", text).group(1)) > 60
    text = words(holdout=0.25)
    assert "Measures come from 25% of the samples" in text
    assert int(re.search(r"Errors (\d+) in 50", text).group(1)) > 12
    for more, message in (
        ({"cv": 2, "holdout": 0.5}, "cv: expected None with holdout, got 2"),
        ({"cv": 300}, "cv: expected 2 to 1.. folds, the number of samples of the largest class"),
        ({"holdout": 2.0}, "holdout: expected a share between 0 and 1"),
        (
            {"holdout": 0.001},
            "leaves samples of each class on both sides, got 0.001",
        ),
        ({"cv": 2, "random_state": -1}, r"^random_state: expected an integer in 0..4294967295"),
    ):
        with pytest.raises(ValueError, match=message):
            report.write_report(model, rows, y, **more)


@pytest.mark.usefixtures("undrawn")
def test_a_class_with_fewer_samples_than_folds(rng):
    rows, y = rng.standard_normal((60, 3)), np.repeat(["a", "b", "c"], [38, 20, 2])
    rows += np.searchsorted(["a", "b", "c"], y)[:, None]
    model = LinearDiscriminantAnalysis().fit(rows, y)
    assert "of 3 classes" in Page(report.write_report(model, rows, y, cv=5)).words
    y[-1] = "a"
    with pytest.raises(ValueError, match=r"cv: expected two samples of .*, got one of class 'c'"):
        report.write_report(model, rows, y, cv=5)


@pytest.mark.usefixtures("undrawn")
def test_views_are_explained_and_defaults_not_marked(tmp_path, digits):
    train, y, test, truth = digits
    few = slice(26, 30)
    model = ef.TableClassifier(views=["columns", "gem", "boosting_pairs"]).fit(train[:, few], y)
    ef.save(model, tmp_path / "model.efm")
    words = Page(report.write_report(ef.load(tmp_path / "model.efm"), test[:, few], truth)).words
    assert "boosting_pairs 0.00 \u2013 fewer than 1,000 samples" in words
    about = words.rpartition("Parameters and versions")[2]
    assert "views ['columns', 'gem', 'boosting_pairs'] changed" in about
    assert about.count("changed") == 1


def test_many_classes_and_unknown_labels(rng):
    y = np.repeat(np.arange(30), 12)
    rows = rng.standard_normal((360, 3)) + rng.standard_normal((30, 3))[y]
    model = KNeighborsClassifier().fit(rows, y)
    y[:5] = 99
    page = Page(report.write_report(model, rows, y))
    assert "Samples 355 of 30 classes; 5 with unknown labels left out" in page.words
    assert "Share of the true class" in page.words


def test_bad_arguments_are_named(tmp_path):
    model = gem_classifier(n_directions=2).fit(X, Y)
    for given, message in (
        ({"title": 3}, "title: expected text"),
        ({"image_shape": (3, 3)}, "image_shape: expected 4 pixels, got 3 x 3"),
        ({"image_shape": "square"}, "image_shape: expected rows and columns"),
        ({"X": X[:, :3]}, "X has 3 features"),
        ({"X": X[0]}, "X: expected at least two dimensions"),
        ({"y": Y[:5]}, "y: expected 90 labels"),
        ({"y": np.full(90, "wasp")}, "y: expected labels among those of the model"),
        ({"model": ef.TableClassifier()}, "not fitted"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            report.write_report(**{"model": model, "X": X, "y": Y, **given})
    file = tmp_path / "report.html"
    file.write_text("as it was")
    with pytest.raises(ValueError, match="y: expected 90 labels"):
        report.write_report(model, X, Y[:3], file)
    assert file.read_text() == "as it was"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("form", ["datetime64[ns]", "str", "object"])
def test_effects_of_dates_are_in_order_of_time(form):
    days = pd.Series(pd.date_range("2024-01-01", periods=60))
    text = days.dt.strftime("%Y-%m-%d")
    day = {"datetime64[ns]": days, "str": text, "object": days.dt.date.astype(object)}[form]
    frame = pd.DataFrame({"day": day, "flag": [True, False] * 30})
    frame = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    frame.loc[3, "day"] = None
    y = np.random.default_rng(0).normal(size=60)
    model = ef.TableRegressor(views="columns").fit(frame, y)
    effect = column_effect(model, frame, 0, "day")
    assert effect.index.dtype.kind == "M"
    assert effect.index.is_monotonic_increasing
    at = frame.assign(day=effect.index[4] if form.startswith("d") else str(effect.index[4].date()))
    if form == "object":
        at["day"] = effect.index[4].date()
    np.testing.assert_allclose(effect.iloc[4, 0], model.predict(at).mean(), rtol=1e-9)
    assert column_effect(model, frame, 1, "flag").index.tolist() == ["False", "True"]
    page = report.write_report(model, frame, y)
    assert "Mean prediction by the value of a column." in page
