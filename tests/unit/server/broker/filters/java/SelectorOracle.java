import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import com.alibaba.fastjson2.JSONWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.broker.filter.MessageEvaluationContext;
import org.apache.rocketmq.filter.expression.BooleanExpression;
import org.apache.rocketmq.filter.expression.MQFilterException;
import org.apache.rocketmq.filter.parser.SelectorParser;
import org.apache.rocketmq.filter.util.BloomFilter;

/** Reads {"properties": [{...}], "expressions": ["..."], "bloom": [[f, n, "text"]]}, writes what RocketMQ says. */
public class SelectorOracle {
    public static void main(String[] args) throws Exception {
        JSONObject input = JSON.parseObject(Files.readString(Path.of(args[0])));
        JSONArray contexts = input.getJSONArray("properties");
        JSONArray results = new JSONArray();
        for (Object text : input.getJSONArray("expressions")) {
            results.add(results((String) text, contexts));
        }
        JSONArray blooms = new JSONArray();
        for (Object item : input.getJSONArray("bloom")) {
            JSONArray given = (JSONArray) item;
            blooms.add(BloomFilter.createByFn(given.getInteger(0), given.getInteger(1)).generate(given.getString(2)));
        }
        JSONObject output = new JSONObject();
        output.put("properties", contexts);
        output.put("expressions", results);
        output.put("bloom", blooms);
        Files.writeString(Path.of(args[1]), output.toString(JSONWriter.Feature.WriteNulls));
    }

    /** A letter for each context: T, F, N for null, X for an exception. */
    static JSONObject results(String text, JSONArray contexts) throws Exception {
        JSONObject result = new JSONObject();
        result.put("expression", text);
        BooleanExpression expression;
        try {
            expression = SelectorParser.parse(text);
        } catch (MQFilterException error) {
            result.put("error", error.getMessage());
            return result;
        }
        StringBuilder letters = new StringBuilder();
        for (Object context : contexts) {
            Map<String, String> properties = new HashMap<>();
            ((JSONObject) context).forEach((name, value) -> properties.put(name, (String) value));
            try {
                Object value = expression.evaluate(new MessageEvaluationContext(properties));
                letters.append(value == null ? "N" : Boolean.TRUE.equals(value) ? "T" : "F");
            } catch (Throwable error) {
                letters.append("X");
            }
        }
        result.put("answers", letters.toString());
        return result;
    }
}
